// Ralph inside Claude Code (2.1.286 and newer): commands that act in a running turn, a line under the prompt, and Esc.
// Every rule is in `ralph module`. This file passes it events as JSON on stdin, never through a shell, and does what it
// answers. Nothing here throws into the client or makes it wait: what fails here is left to the hooks.

const GUIDANCE = 'TEXT [--pin] [--for 2h] [--replace] | --remove N';
const COMMANDS = [
  ['stop', 'Stop the Ralph loop now, in the middle of a turn', '[--all]'],
  ['forbid', 'Tell the agent now, in the middle of a turn, what not to do', GUIDANCE],
  ['encourage', 'Tell the agent now, in the middle of a turn, what to do more of', GUIDANCE],
  ['status', 'Show the Ralph loop now, in the middle of a turn', '[--all]'],
  ['answer', "Answer the agent's question now", 'TEXT [--replace]'],
];
// A command may wait for a runner to end its agent.
const COMMAND_MS = 28000;
const REFRESH_MS = 5000;
const TICK_MS = 1000;
// Renews the line after this many ticks even if nothing changed, because it shows times.
const RENEW_TICKS = 30;

let session = {}; // its id, and as `ralph module` names them: `watch`, `state`, `pin`
let project; // where the client was launched
let running = false;
let turns = 0; // how many have begun
let pinned = false;
let timer;
let busy = false;
let shown = '';
let ticks = 0;

function leave(promise) {
  promise.catch(() => {});
}

async function ask($, event, timeoutMs, more) {
  const id = await $.session.id();
  project ??= await $.session.root();
  const stdin = JSON.stringify({ event, session_id: id, running, usage: await $.session.usage(), ...more });
  const env = { CLAUDE_PROJECT_DIR: project };
  const { stdout } = await $.process.run([`${$.plugin.root}/bin/ralph`, 'module'], { stdin, env, timeoutMs });
  const answer = JSON.parse(stdout);
  session = { id, watch: answer.watch, state: answer.state, pin: answer.pin ?? session.pin };
  return answer;
}

function pin($, line) {
  pinned = typeof line === 'string';
  $.ui.status(pinned ? line : undefined);
}

// A row of the conversation has one line.
function log($, text) {
  for (const line of text.split('\n')) if (line.trim() !== '') $.ui.log(line);
}

async function obey($, answer) {
  if (answer.status !== undefined && session.pin !== false) pin($, answer.status);
  if (typeof answer.log === 'string') log($, answer.log);
  if (typeof answer.append === 'string') {
    await $.session.append({ message: { type: 'user', content: [{ type: 'text', text: answer.append }] } });
  }
  if (answer.compact === true) await $.session.compact();
  // The client refuses it while a command runs.
  if (typeof answer.submit === 'string') $.clock.after(1, () => leave($.prompt.submit({ text: answer.submit })));
}

// Whether the session has a loop: one look for a file. A process is started once for each session.
async function hasLoop($) {
  const id = await $.session.id();
  if (session.id !== id) {
    session = { id };
    await ask($, 'session', REFRESH_MS);
  }
  return typeof session.watch === 'string' && (await $.fs.exists(session.watch));
}

// Renews the line and tells the agent what is new, if something changed. A loop that ended is shown once more, but not if a
// turn has begun since this was asked for, which removes its line.
async function tick($, asked = turns) {
  if (busy) return;
  busy = true;
  try {
    const loop = await hasLoop($);
    if (!loop) {
      timer?.cancel();
      timer = undefined;
    }
    const state = await $.fs.stat(session.state).catch(() => undefined);
    const now = JSON.stringify([session.id, loop, running, state?.mtimeMs, await $.session.usage()]);
    if (now === shown && ++ticks < RENEW_TICKS) return;
    shown = now;
    ticks = 0;
    const answer = await ask($, 'refresh', REFRESH_MS);
    if (loop || asked === turns) await obey($, answer);
  } finally {
    busy = false;
  }
}

// Follows the loop from now on, if there is one.
async function follow($, asked = turns) {
  if (await hasLoop($)) timer ??= $.clock.every(TICK_MS, () => leave(tick($)));
  if (timer !== undefined) await tick($, asked);
}

async function sessionStarted($) {
  for (const [name, description, argumentHint] of COMMANDS) {
    await $.command.register({ name: `ralph-${name}`, description, argumentHint, immediate: true });
  }
  await follow($);
}

async function turnStarted($) {
  await follow($);
  if (timer === undefined && pinned) pin($, null);
}

async function turnEnded($, reason) {
  // The client notes a little later that it is idle.
  ticks = RENEW_TICKS - 3;
  if (reason !== 'aborted' || !(await hasLoop($))) return follow($);
  const last = (await $.session.messages()).at(-1);
  await obey($, await ask($, 'aborted', REFRESH_MS, { last: last?.text }));
}

async function command($, name, args) {
  let text;
  try {
    const answer = await ask($, 'command', COMMAND_MS, { command: name, args });
    text = answer.text;
    await obey($, answer);
  } catch {
    // Said below.
  }
  if (typeof text !== 'string') text = `Ralph did not answer. /ralph:${name} does the same when the turn ends.`;
  if (!running) return { text };
  // In a running turn the client prints a command's text only at its end, and sends it to the agent.
  log($, text);
  return {};
}

export function register(on) {
  on('session.start', ($, e, next) => {
    project = e.cwd;
    leave(sessionStarted($));
    return next(e);
  });
  on('session.end', ($, e, next) => {
    if (pinned) pin($, null);
    return next(e);
  });
  on('turn.start', ($, e, next) => {
    if (e.agentId === undefined) {
      running = true;
      turns++;
      leave(turnStarted($));
    }
    return next(e);
  });
  on('turn.complete', ($, e, next) => {
    if (e.agentId === undefined) {
      running = false;
      leave(turnEnded($, e.reason));
    }
    return next(e);
  });
  on('command.run', { command: 'ralph-stop' }, ($, e) => command($, 'stop', e.args));
  on('command.run', { command: 'ralph-forbid' }, ($, e) => command($, 'forbid', e.args));
  on('command.run', { command: 'ralph-encourage' }, ($, e) => command($, 'encourage', e.args));
  on('command.run', { command: 'ralph-status' }, ($, e) => command($, 'status', e.args));
  on('command.run', { command: 'ralph-answer' }, ($, e) => command($, 'answer', e.args));
}
