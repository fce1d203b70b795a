package modeloracle_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

// wire takes requests and answers each with the same bytes.
type wire struct {
	header http.Header
	answer []byte
	asked  [][]byte
	paths  []string
}

// RoundTrip implements [http.RoundTripper].
func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	w.asked, w.paths = append(w.asked, body), append(w.paths, r.URL.Path)
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(bytes.NewReader(w.answer)), Request: r,
	}, nil
}

func (w *wire) client() *http.Client { return &http.Client{Transport: w} }

func eventStream() http.Header { return http.Header{"Content-Type": {"text/event-stream"}} }

// whole is an answer as package model decodes it.
type whole struct {
	id, model, stop string
	blocks          []model.Block
	usage           model.Usage
}

// ask makes a request with package model.
func ask(t *testing.T, m model.Model, r *model.Request) (a whole) {
	t.Helper()
	require.NoError(t, m.Stream(t.Context(), r, func(e *model.Event) bool {
		switch e.Kind {
		case model.Start:
			a.id, a.model = e.ID, e.Model
		case model.Done:
			a.blocks = append(a.blocks, *e.Block)
		case model.Stop:
			a.stop, a.usage = e.StopReason, e.Usage
		case model.Delta:
		}
		return true
	}))
	return a
}

// encoded are messages as the codec encodes them.
func encoded(c model.Codec, list ...model.Message) (all [][]byte) {
	for i := range list {
		all = append(all, c.Message(&list[i]))
	}
	return all
}

func said(role model.Role, blocks ...model.Block) model.Message {
	return model.Message{Role: role, Blocks: blocks}
}

func text(s string) model.Block { return model.Block{Kind: model.Text, Text: s} }

// recording is a streamed answer of a server.
type recording struct {
	name string
	body []byte
}

// recordings are the streams whose request went to that path: those of package model's tests,
// and those of the directory that TROUPE_PROVIDERS names.
func recordings(t *testing.T, path string) (all []recording) {
	t.Helper()
	dirs := []string{filepath.Join("..", "..", "model", "testdata", "providers")}
	if more := os.Getenv("TROUPE_PROVIDERS"); more != "" {
		dirs = append(dirs, more)
	}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, files, dir)
		for _, file := range files {
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			var cassette struct {
				Interactions []struct {
					Request struct {
						URL string `yaml:"url"`
					} `yaml:"request"`
					Response struct {
						Headers http.Header `yaml:"headers"`
						Body    string      `yaml:"body"`
					} `yaml:"response"`
				} `yaml:"interactions"`
			}
			require.NoError(t, yaml.Unmarshal(content, &cassette), file)
			for _, x := range cassette.Interactions {
				at, _, _ := strings.Cut(x.Request.URL, "?")
				if strings.HasSuffix(at, path) && strings.HasPrefix(x.Response.Headers.Get("Content-Type"), "text/event-stream") {
					name := strings.TrimSuffix(filepath.Base(file), ".yaml") + " " + x.Request.URL
					all = append(all, recording{name, []byte(x.Response.Body)})
				}
			}
		}
	}
	require.NotEmpty(t, all)
	return all
}

// stream is the body of events with these data.
func stream(data ...string) []byte {
	var b bytes.Buffer
	for _, d := range data {
		if kind, rest, ok := strings.Cut(strings.TrimPrefix(d, `{"type":"`), `"`); ok && rest != "" && strings.HasPrefix(d, `{"type":"`) {
			b.WriteString("event: " + kind + "\n")
		}
		b.WriteString("data: " + d + "\n\n")
	}
	return b.Bytes()
}
