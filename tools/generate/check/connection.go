//	$kind SENDER STATE HEX
	case words[0] == "$kind" && last == 3:
		return read$Kind(words[1], words[2], data)

func read$Kind(from, name string, data []byte) (string, error) {
	sender := $module.SenderClient
	if from == "server" {
		sender = $module.SenderServer
	} else if from != "client" {
		return "", wrong("sender", from)
	}
	state := slices.Index($module.States, name)
	if state < 0 {
		return "", wrong("state", name)
	}
	message, err := $module.ParseMessage(data, sender, $module.State(state))
	if err != nil {
		return "", err
	}
	built, err := $module.BuildMessage(message)
	return found($module.ToJSON(message, &$module.Layout{}), built, err, data)
}
