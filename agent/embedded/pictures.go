package embedded

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	_ "image/gif"  // for their sizes
	_ "image/jpeg" // ditto
	_ "image/png"  // ditto
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
)

// inlined is the source of an image or a document in base64, in the form of the Messages API.
type inlined struct {
	Type  string `json:"type"`
	Media string `json:"media_type"`
	Data  string `json:"data"`
}

// block is that of an image for the model: a text, if requests with it would be refused.
func (e inlined) block() agent.Object {
	e.Type = "base64"
	if why := e.refused(model.Image); why != "" {
		return agent.Object{"type": "text", "text": leftOutFor(model.Image, why)}
	}
	return agent.Object{"type": "image", "source": agent.Object{"type": e.Type, "media_type": e.Media, "data": e.Data}}
}

// leftOutFor stands in place of an image or a document.
func leftOutFor(kind model.BlockKind, why string) string {
	what := "An image"
	if kind == model.Document {
		what = "A document"
	}
	return "[" + what + " was left out: " + why + ".]"
}

// refused says why a request with the source would be refused; "": it would not, as far as the
// header of its data says. It puts right what can be: the media type, and spaces in base64.
func (e *inlined) refused(kind model.BlockKind) string {
	switch e.Type {
	case "base64":
	case "":
		return "it has no source"
	default:
		return "" // an address, or text
	}
	if strings.ContainsAny(e.Data, " \t\r\n") {
		e.Data = strings.Join(strings.Fields(e.Data), "")
	}
	digits := strings.TrimRight(e.Data, "=")
	padding := len(e.Data) - len(digits)
	switch size, limit := base64.StdEncoding.DecodedLen(len(e.Data))-padding, mostOf(kind); {
	case len(e.Data)%4 != 0, padding > 2, strings.Contains(digits, "="): // a decoder of a stream may stop there
		return notBase64
	case size <= 0:
		return "it is empty"
	case size > limit:
		return fmt.Sprintf("it has %s, and at most %s can be shown", sizeOf(size), sizeOf(limit))
	}
	data := base64.NewDecoder(base64.StdEncoding, strings.NewReader(e.Data))
	if kind == model.Document {
		var start [5]byte
		if _, err := io.ReadFull(data, start[:]); err != nil || string(start[:]) != "%PDF-" {
			return "it is no PDF file"
		}
		e.Media = "application/pdf"
	} else {
		found, size, err := imageHeader(data)
		switch {
		case found == "":
			return "it is no PNG, JPEG, GIF or WebP"
		case err != nil:
			return "its header says no size"
		case max(size.Width, size.Height) > maxImageSide:
			return fmt.Sprintf("it has %d × %d pixels, and at most %d on a side can be shown", size.Width, size.Height, maxImageSide)
		}
		e.Media = found
	}
	if _, err := io.Copy(io.Discard, data); err != nil {
		return notBase64
	}
	return ""
}

const notBase64 = "its data is not in base64"

// mostOf is how many bytes an image or a document may have.
func mostOf(kind model.BlockKind) int {
	if kind == model.Document {
		return maxPDF
	}
	return maxImage
}

// imageKinds are the images that the API takes.
func imageKinds() []string { return []string{"image/png", "image/jpeg", "image/gif", "image/webp"} }

// imageHeader reads the media type and the size of an image, and no more than it has to. The type is
// "" for an image of a kind that the API does not take.
func imageHeader(r io.Reader) (media string, size image.Config, err error) {
	b := bufio.NewReader(r)
	start, _ := b.Peek(512) // it may have less
	switch media = http.DetectContentType(start); {
	case !slices.Contains(imageKinds(), media):
		return "", size, image.ErrFormat
	case media == "image/webp":
		size, err = webpConfig(start)
	default:
		size, _, err = image.DecodeConfig(b)
	}
	if err == nil && min(size.Width, size.Height) < 1 {
		err = image.ErrFormat
	}
	return media, size, err
}

// webpConfig reads the size of an image from its header, as of RFC 9649.
func webpConfig(b []byte) (c image.Config, err error) {
	const begin = 20 // of the first chunk's data
	le := func(at, bytes int) (n int) {
		for i := range bytes {
			n |= int(b[at+i]) << (8 * i)
		}
		return n
	}
	if len(b) < begin+10 {
		return c, image.ErrFormat
	}
	switch kind := string(b[12:16]); {
	case kind == "VP8X":
		c.Width, c.Height = 1+le(begin+4, 3), 1+le(begin+7, 3)
	case kind == "VP8L" && b[begin] == 0x2f:
		bits := le(begin+1, 4)
		c.Width, c.Height = 1+bits&0x3fff, 1+bits>>14&0x3fff
	case kind == "VP8 " && string(b[begin+3:begin+6]) == "\x9d\x01\x2a":
		c.Width, c.Height = le(begin+6, 2)&0x3fff, le(begin+8, 2)&0x3fff
	default:
		return c, image.ErrFormat
	}
	return c, nil
}

// withSource is a block with another source, in the form of the Messages API.
func withSource(block json.RawMessage, e *inlined) json.RawMessage {
	var all map[string]json.RawMessage
	if json.Unmarshal(block, &all) != nil {
		return block // it was one, so this does not happen
	}
	all["source"], _ = json.Marshal(e) // texts
	out, _ := json.Marshal(all)        // each is JSON
	return out
}
