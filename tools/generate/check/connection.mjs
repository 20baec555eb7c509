//     $kind SENDER STATE HEX
  if (kind === "$kind" && last === 3) return read$Kind(words[1], words[2], data);

function read$Kind(sender, state, data) {
  if (!["server", "client"].includes(sender)) throw new LineError("sender", sender);
  if (!$module.STATES.includes(state)) throw new LineError("state", state);
  const message = $module.parse(data, sender, state);
  return found($module.toJson(message, {}), $module.build(message), data);
}
