//! Our plugin in the user's data folder, and the marketplace around it by which the client finds it.
//!
//! The client loads a plugin of a marketplace on this disk from where it is: the folder's path stays, its content is
//! exchanged, and sessions that are running go on with the new programs at their next hook. (It also keeps a copy in its cache,
//! which it does not use then.)

use super::client::{Client, Installed, Marketplace};
use super::plugin;
use crate::store::file::{self, Privacy};
use crate::store::world::World;
use anyhow::Result;
use std::path::{Path, PathBuf};

pub const NAME: &str = "ralph";
pub const ID: &str = "ralph@ralph";

const MANIFEST: &str = r#"{
  "name": "ralph",
  "owner": { "name": "The Ralph developers" },
  "metadata": { "description": "Ralph, as `ralph install` laid it out" },
  "plugins": [
    {
      "name": "ralph",
      "source": "./ralph",
      "description": "Keeps Claude Code working on a task exactly as long as it should"
    }
  ]
}
"#;

/// The folder of the marketplace.
pub fn folder(world: &World) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("plugin"))
}

/// The folder of the plugin within it.
pub fn plugin(world: &World) -> Result<PathBuf> {
    Ok(folder(world)?.join("ralph"))
}

/// Writes the marketplace's manifest; says whether it had to.
pub fn write(folder: &Path) -> Result<bool> {
    let path = folder.join(".claude-plugin/marketplace.json");
    if file::read_bounded(&path, 1 << 20).is_ok_and(|found| found.as_deref() == Some(MANIFEST.as_bytes())) {
        return Ok(false);
    }
    file::create_dir(path.parent().unwrap_or(folder))?;
    file::replace_alone(&path, MANIFEST.as_bytes(), Privacy::Shared)?;
    Ok(true)
}

/// What the client knows of us.
#[derive(Debug, Default)]
pub struct Known {
    pub marketplace: Option<Marketplace>,
    pub plugin: Option<Installed>,
}

impl Known {
    pub fn ask(client: &Client) -> Result<Known> {
        let marketplace = client.marketplaces()?.into_iter().find(|one| one.name == NAME);
        let ours = |one: &Installed| one.id == ID && (one.scope.is_empty() || one.scope == "user");
        Ok(Known { marketplace, plugin: client.plugins()?.into_iter().find(ours) })
    }

    /// A marketplace of our name that is somewhere else.
    pub fn other(&self, folder: &Path) -> Option<&Marketplace> {
        self.marketplace.as_ref().filter(|one| !one.is_folder(folder))
    }

    /// Brings the client's records up to the folder, by what is missing; says what was done.
    pub fn bring_up(&self, client: &Client, folder: &Path) -> Result<Option<&'static str>> {
        let there = self.marketplace.as_ref().is_some_and(|one| one.is_folder(folder));
        if !there {
            client.add_marketplace(folder)?;
        }
        match &self.plugin {
            Some(plugin) if plugin.enabled => {
                if plugin.version.as_deref() != Some(plugin::VERSION) {
                    client.update(ID)?;
                    return Ok(Some("registered the new version with"));
                }
                Ok((!there).then_some("registered with"))
            }
            Some(_) => client.install(ID).map(|()| Some("registered, and switched on again, with")),
            None => client.install(ID).map(|()| Some("registered with")),
        }
    }
}

/// Copies of our plugin that the client keeps, and leaves behind when it is uninstalled.
pub fn cached(world: &World) -> Option<PathBuf> {
    let cache = world.claude_config.as_ref()?.join("plugins/cache").join(NAME).join("ralph");
    let entries = std::fs::read_dir(&cache).ok()?;
    let all_ours = entries.flatten().all(|entry| plugin::is_ours(&entry.path()));
    all_ours.then_some(cache)
}
