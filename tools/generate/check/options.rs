//! - `$kind NAME=VALUE ... HEX`, with options and the parameters that states set
        ["$kind", ref settings @ .., hex] => read_$kind(settings, &bytes(hex)?),

fn read_$kind(settings: &[&str], data: &[u8]) -> Result<String, String> {
    let (mut options, mut sets) = ($module::Options::default(), 0);
    for setting in settings {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        let mut parameters = $module::STATE_PARAMETERS.iter();
        match parameters.position(|&each| each == name) {
            Some(bit) => {
                let is_set: bool = value.parse().map_err(|_| wrong("setting", setting))?;
                sets |= u64::from(is_set) << bit;
            }
            None => options.set(name, value).map_err(refused)?,
        }
    }
    let layout = options.layout(sets);
    let message = $module::parse(data, &layout).map_err(refused)?;
    let built = $module::build(&message, &layout);
    Ok(found(message.to_json(&layout), built, data))
}
