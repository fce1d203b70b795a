package ui

import (
	"bytes"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/internal/pages"
)

// assets are the files of the pages. They have no data, so everybody may read them.
type assets struct {
	files   map[string]asset
	index   *template.Template
	entered *template.Template // after the login with an address
}

type asset struct {
	content []byte
	etag    string
}

// enteredPage loads the index by itself: a cookie that is SameSite=Strict does not follow a redirect
// that another site has begun. Its argument says whether the login has worked.
const enteredPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
{{if .}}<meta http-equiv="refresh" content="0;url=./">{{end}}
<title>Troupe</title>
<link rel="icon" href="icon.svg">
<link rel="stylesheet" href="window.css">
</head>
<body>
{{if .}}<p class="boot"><a href="./">Go on</a></p>{{else}}<p class="boot">This address was used. Log in with the token, or let the program print another address. <a href="./">Go on</a></p>{{end}}
</body>
</html>
`

func loadAssets() *assets {
	a := &assets{files: map[string]asset{}, entered: template.Must(template.New("entered").Parse(enteredPage))}
	all, _ := fs.ReadDir(pages.Files, ".") // it is embedded
	for _, f := range all {
		content := pages.Sent(f.Name())
		if f.Name() == "index.html" {
			a.index = template.Must(template.New(f.Name()).Parse(string(content)))
			continue
		}
		a.files[f.Name()] = asset{content, etag(content)}
	}
	return a
}

// asset answers with the index page or another file of the pages.
func (w *Window) asset(rw http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if name == "" || name == "index.html" {
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = w.assets.index.Execute(rw, map[string]string{"Program": shown.Line(program())}) // an error means that the client has left
		return
	}
	f, ok := w.assets.files[name]
	if !ok {
		http.NotFound(rw, r)
		return
	}
	h := rw.Header()
	h.Set("Cache-Control", "no-cache") // it is asked for again, and mostly answered by 304
	h.Set("Etag", f.etag)
	switch path.Ext(name) { // the tables of machines differ
	case ".js":
		h.Set("Content-Type", "text/javascript; charset=utf-8")
	case ".css":
		h.Set("Content-Type", "text/css; charset=utf-8")
	case ".svg":
		h.Set("Content-Type", "image/svg+xml")
	}
	http.ServeContent(rw, r, name, time.Time{}, bytes.NewReader(f.content))
}
