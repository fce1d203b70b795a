package pages

import (
	"embed"
	"regexp"
	"strings"
)

// Files are index.html, window.css, icon.svg and the modules.
//
//go:embed *.html *.css *.svg *.js
var Files embed.FS

var (
	imports = regexp.MustCompile(`(?m)^import .*\n`)
	exports = regexp.MustCompile(`(?m)^export `)
	remarks = regexp.MustCompile(`(?m)^[ \t]*//.*\n`)
	sprite  = regexp.MustCompile(`(?s)<svg class="sprite".*?</svg>`)
)

// Script is modules as one script, in this order: each must come after those that it imports,
// and no two have a name in common.
func Script(modules ...string) string {
	var all strings.Builder
	for _, name := range modules {
		all.WriteString(exports.ReplaceAllString(imports.ReplaceAllString(string(Sent(name)), ""), ""))
	}
	return all.String()
}

// Report is the script of report.html: the charts, the groups and the transcripts of a job.
func Report() string {
	return "(() => {\n'use strict';\n" + Text("report-rows.js") + "if (document.body) {\n" +
		Script("ui.js", "charts.js", "limits.js", "charts-job.js", "tasks.js", "transcript.js", "report.js") + "}\n})();\n"
}

// Sent is the content of a file as browsers get it: modules without the lines that are comments alone.
func Sent(name string) []byte {
	if !strings.HasSuffix(name, ".js") {
		return []byte(Text(name))
	}
	return []byte(remarks.ReplaceAllString(Text(name), ""))
}

// Life is the drawing of a session's life, for other pages: the style of what is below the element with
// the id life, and a script whose value has lanes, cursor and roles.
func Life() (style, script string) {
	css := Text("window.css")
	section := func(name string) string {
		_, rest, _ := strings.Cut(css, "/* "+name)
		_, rest, _ = strings.Cut(rest, "*/")
		part, _, _ := strings.Cut(rest, "\n/*")
		return part
	}
	return section("Tokens") + "#life{" + section("Charts") + "}",
		"(() => {\n'use strict';\n" + Script("ui.js", "charts.js", "charts-life.js") + "return { lanes, cursor, roles };\n})()"
}

// Text is the content of a file. A name that is not there is a mistake of the caller, and panics.
func Text(name string) string {
	raw, err := Files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// Sprite is the part of the index page that has the shapes of states and the icons.
func Sprite() string { return sprite.FindString(Text("index.html")) }
