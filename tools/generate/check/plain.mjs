//     $kind HEX
  if (kind === "$kind" && last === 1) return read$Kind(data);

function read$Kind(data) {
  const message = $module.parse(data, {});
  return found($module.toJson(message, {}), $module.build(message, {}), data);
}
