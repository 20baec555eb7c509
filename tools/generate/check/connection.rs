//! - `$kind SENDER STATE HEX`
        ["$kind", sender, state, hex] => read_$kind(sender, state, &bytes(hex)?),

fn read_$kind(sender: &str, state: &str, data: &[u8]) -> Result<String, String> {
    let sender = match sender {
        "server" => $module::Sender::Server,
        "client" => $module::Sender::Client,
        _ => return Err(wrong("sender", sender)),
    };
    let mut states = $module::State::ALL.iter();
    let Some((state, _)) = states.find(|each| each.1 == state) else {
        return Err(wrong("state", state));
    };
    let message = $module::parse(data, sender, *state).map_err(refused)?;
    let built = $module::build(&message);
    let json = message.to_json(&$module::Layout);
    Ok(found(json, built, data))
}
