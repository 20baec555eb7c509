//	$kind NAME=VALUE ... HEX     with options and the parameters that states set
	case words[0] == "$kind" && last > 0:
		return read$Kind(words[1:last], data)

func read$Kind(settings []string, data []byte) (string, error) {
	options, sets := $module.Options{}, uint64(0)
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		bit := slices.Index($module.StateParameters, name)
		switch {
		case bit < 0:
			if err := options.Set(name, value); err != nil {
				return "", err
			}
		case value == "true":
			sets |= 1 << bit
		case value != "false":
			return "", wrong("setting", setting)
		}
	}
	layout := options.Layout(sets)
	message, err := $module.ParseMessage(data, layout)
	if err != nil {
		return "", err
	}
	built, err := $module.BuildMessage(message, layout)
	return found($module.ToJSON(message, layout), built, err, data)
}
