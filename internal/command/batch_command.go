package command

import "strings"

// typed is a command line for the report: without the values that may be secret, which are
// those of variables and addresses, and inline JSON.
func typed(args []string) string {
	words := []string{"troupe", "batch"}
	hideNext, urlNext := false, false
	for _, a := range args {
		name, value, joined := strings.Cut(a, "=")
		secret := name == "--env" || name == "-e" || name == "--webhook"
		switch {
		case hideNext:
			a = hidden(a)
		case urlNext:
			a = withoutToken(a)
		case name == "--nats" && joined:
			a = name + "=" + withoutToken(value)
		case secret && joined:
			a = name + "=" + hidden(value)
		case strings.HasPrefix(a, "-e") && !strings.HasPrefix(a, "--") && a != "-e":
			a = "-e" + hidden(a[2:])
		case strings.HasPrefix(a, "-") && joined && strings.HasPrefix(strings.TrimSpace(value), "{"), strings.HasPrefix(strings.TrimSpace(a), "{"):
			a = strings.TrimSuffix(a[:strings.IndexByte(a, '{')+1], "{") + "{…}"
		}
		urlNext = !hideNext && !urlNext && a == "--nats"
		hideNext = !hideNext && secret && !joined
		words = append(words, shellQuoted(a))
	}
	return strings.Join(words, " ")
}

// hidden is NAME=VALUE without the value, and of anything else nothing.
func hidden(v string) string {
	if name, _, named := strings.Cut(v, "="); named && !strings.ContainsAny(name, ":/") {
		return name + "=***"
	}
	return "***"
}
