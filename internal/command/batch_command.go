package command

import (
	"slices"
	"strings"
)

// typed is a command line for the report: without the values that may be secret, which are
// those of variables and addresses, and inline JSON.
func typed(args []string) string {
	page := batchPage()
	flags, words := page.flags(), []string{"troupe", "batch"}
	of := "" // the flag whose value comes
	for _, a := range args {
		name, value, joined := strings.Cut(a, "=")
		switch flag := flagNamed(flags, name); {
		case of != "":
			a, of = shownValue(of, a), ""
		case a == "--":
			flags = nil
		case flag == nil:
			a = shownValue("", a)
		case joined:
			a = name + "=" + shownValue(flag.name, value)
		case flag.arg != "" && !flag.optional:
			of = flag.name
		}
		words = append(words, shellQuoted(a))
	}
	return strings.Join(words, " ")
}

// flagNamed is the flag that an argument names, in every form that [longFlags] takes, or nil.
func flagNamed(flags []flagSpec, arg string) *flagSpec {
	if !strings.HasPrefix(arg, "-") {
		return nil
	}
	name := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
	i := slices.IndexFunc(flags, func(f flagSpec) bool {
		if len(arg) == 2 {
			return f.short == name && name != ""
		}
		return f.name == name
	})
	if i < 0 {
		return nil
	}
	return &flags[i]
}

// shownValue is the value of a flag as it is shown.
func shownValue(flag, value string) string {
	switch {
	case flag == "env", flag == "webhook":
		return hidden(value)
	case flag == "nats":
		return withoutToken(value)
	case strings.HasPrefix(strings.TrimSpace(value), "{"):
		return "{…}"
	}
	return value
}

// hidden is NAME=VALUE without the value, and of anything else nothing.
func hidden(v string) string {
	if name, _, named := strings.Cut(v, "="); named && !strings.ContainsAny(name, ":/") {
		return name + "=***"
	}
	return "***"
}
