//! The marketplace in the user's data folder through which Claude Code finds our plugin.
//!
//! Claude Code loads a plugin of a marketplace on this disk from its folder. (It also keeps a copy in its cache, which it does not
//! use then.) So the path stays, its content is replaced, and open sessions use the new programs from their next hook.

use super::VERSION;
use crate::claude::client::Client;
use crate::claude::client::plugins::{InstalledPlugin, Marketplace};
use crate::claude::plugin;
use crate::store::file::{self, Privacy};
use crate::store::world::World;
use anyhow::Result;
use std::path::{Path, PathBuf};

pub const NAME: &str = "ralph";
pub const ID: &str = "ralph@ralph";

const MANIFEST: &str = r#"{
  "name": "ralph",
  "owner": { "name": "The Ralph developers" },
  "metadata": { "description": "Written by `ralph install`" },
  "plugins": [
    {
      "name": "ralph",
      "source": "./ralph",
      "description": "Keeps Claude Code working on a task exactly as long as it should"
    }
  ]
}
"#;

/// Returns the folder of the marketplace.
pub fn folder(world: &World) -> Result<PathBuf> {
    Ok(world.data_dir()?.join("plugin"))
}

/// Returns the folder of the plugin in it.
pub fn plugin(world: &World) -> Result<PathBuf> {
    Ok(folder(world)?.join("ralph"))
}

/// Writes the manifest, and returns whether it was missing or different.
pub fn write(folder: &Path) -> Result<bool> {
    let path = folder.join(".claude-plugin/marketplace.json");
    if file::read_bounded(&path, 1 << 20).is_ok_and(|found| found.as_deref() == Some(MANIFEST.as_bytes())) {
        return Ok(false);
    }
    file::create_dir(path.parent().unwrap_or(folder))?;
    file::replace_locked(&path, MANIFEST.as_bytes(), Privacy::Shared)?;
    Ok(true)
}

/// Our marketplace and plugin, as Claude Code knows them.
#[derive(Debug, Default)]
pub struct Registration {
    pub marketplace: Option<Marketplace>,
    pub plugin: Option<InstalledPlugin>,
}

impl Registration {
    pub fn read(client: &Client) -> Result<Registration> {
        let marketplace = client.marketplaces()?.into_iter().find(|one| one.name == NAME);
        let is_ours =
            |one: &InstalledPlugin| one.id == ID && one.scope.as_deref().is_none_or(|scope| scope == "user");
        Ok(Registration { marketplace, plugin: client.plugins()?.into_iter().find(is_ours) })
    }

    /// Returns a marketplace of our name in another place.
    pub fn other(&self, folder: &Path) -> Option<&Marketplace> {
        self.marketplace.as_ref().filter(|one| !one.is_folder(folder))
    }

    /// Registers what is missing, and returns what was done.
    pub fn complete(&self, client: &Client, folder: &Path) -> Result<Option<&'static str>> {
        let is_known = self.marketplace.as_ref().is_some_and(|one| one.is_folder(folder));
        if !is_known {
            client.add_marketplace(folder)?;
        }
        match &self.plugin {
            Some(plugin) if !plugin.enabled => {
                client.install(ID)?;
                Ok(Some("enabled again in"))
            }
            Some(plugin) if plugin.registered_version.as_deref() != Some(VERSION) => {
                client.update(ID)?;
                Ok(Some("updated in"))
            }
            Some(_) => Ok((!is_known).then_some("registered with")),
            None => {
                client.install(ID)?;
                Ok(Some("registered with"))
            }
        }
    }
}

/// Returns the folder of the copies that Claude Code keeps, and leaves behind when the plugin is uninstalled.
pub fn cached(world: &World) -> Option<PathBuf> {
    let cache = world.claude_config.as_ref()?.join("plugins/cache").join(NAME).join("ralph");
    let mut entries = std::fs::read_dir(&cache).ok()?.flatten();
    entries.all(|entry| plugin::version_of_ours(&entry.path()).is_some()).then_some(cache)
}
