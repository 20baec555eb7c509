//! - `$kind HEX`
        ["$kind", hex] => read_$kind(&bytes(hex)?),

fn read_$kind(data: &[u8]) -> Result<String, String> {
    let layout = $module::Layout;
    let message = $module::parse(data, &layout).map_err(refused)?;
    let built = $module::build(&message, &layout);
    Ok(found(message.to_json(&layout), built, data))
}
