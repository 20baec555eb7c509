//     $kind NAME=VALUE ... HEX     with options and the parameters that states set
  if (kind === "$kind" && last > 0) return read$Kind(words.slice(1, -1), data);

function read$Kind(settings, data) {
  const options = { protoVersion: 1 };
  let sets = 0;
  for (const setting of settings) {
    const [name, value = ""] = setting.split("=");
    const bit = $module.STATE_PARAMETERS.indexOf(name);
    if (bit < 0) $module.setOption(options, name, value);
    else if (value === "true") sets |= 1 << bit;
    else if (value !== "false") throw new LineError("setting", setting);
  }
  const layout = $module.layoutOf(options, sets);
  const message = $module.parse(data, layout);
  return found($module.toJson(message, layout), $module.build(message, layout), data);
}
