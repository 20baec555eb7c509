//	$kind HEX
	case words[0] == "$kind" && last == 1:
		return read$Kind(data)

func read$Kind(data []byte) (string, error) {
	layout := &$module.Layout{}
	message, err := $module.ParseMessage(data, layout)
	if err != nil {
		return "", err
	}
	built, err := $module.BuildMessage(message, layout)
	return found($module.ToJSON(message, layout), built, err, data)
}
