package embedded

import (
	"bytes"
	"encoding/base64"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
)

// binaries are the endings of files that Read refuses by their names (observed).
const binaries = `3ds 7z a aac ai aiff apk app avi avif bin blend bmp bz2 class dat data db deb dll dmg doc docm docx dotx dylib
	ear eot eps epub exe feather fig flac flv gz heic heif ico idx iso jar lib lz4 m4a m4v max mdb mkv mov mp3 mp4
	mpeg mpg msi node npy npz numbers o obj odp ods odt ogg opus otf parquet pickle potx ppsx ppt pptx psd pyc pyo
	rar rlib rpm sketch so sqlite sqlite3 swf tar tgz tif tiff ttf war wasm wav webm whl wma wmv woff woff2 xd xls
	xlsb xlsm xlsx xltx xz z zip zst`

// binaryProblem is what the model reads if the name is that of a binary file; "": it is not.
func binaryProblem(name string) string {
	base := strings.ToLower(filepath.Base(name))
	i := strings.LastIndexByte(base, '.')
	if i < 0 || !slices.Contains(strings.Fields(binaries), base[i+1:]) {
		return ""
	}
	ending := base[i:]
	if i == 0 {
		ending = "" // a name that begins with a dot has no ending
	}
	return "This tool cannot read binary files. The file appears to be a binary " + ending + " file. Use a skill for this file type if one is available, or a shell command or script that can read the format."
}

// imageKind is the media type that the file's name promises; "": none.
func imageKind(path string) string {
	switch strings.ToLower(filepath.Ext(path)) {
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	}
	return ""
}

func (h *hands) imageResult(path string, content []byte) agent.ToolResult {
	if len(content) == 0 {
		return failure("Image file is empty: %s", path)
	}
	if problem := h.notTaken(model.Image, path, len(content)); problem != "" {
		return failure("%s", problem)
	}
	found, c, err := imageHeader(bytes.NewReader(content))
	if found == "" {
		return failure("File has an image extension but its content is not a valid PNG/JPEG/GIF/WebP. Detected: unrecognized bytes (hex: % x). This usually means a download saved an error/login page instead of the image. Use `file \"%s\"` to confirm, or read it as text with Bash (e.g. `head -c 500`).", content[:min(len(content), 8)], path)
	}
	data := base64.StdEncoding.EncodeToString(content)
	about := agent.Object{"base64": data, "type": found, "originalSize": len(content)}
	if err != nil {
		return failure("%s", noSize)
	}
	if max(c.Width, c.Height) > maxImageSide {
		return failure("%s has %d × %d pixels, and images of at most %d on a side can be shown. Make it smaller with a command.", path, c.Width, c.Height, maxImageSide)
	}
	about["dimensions"] = agent.Object{"originalWidth": c.Width, "originalHeight": c.Height, "displayWidth": c.Width, "displayHeight": c.Height}
	return agent.ToolResult{
		Content:    []any{agent.Object{"type": "image", "source": agent.Object{"type": "base64", "data": data, "media_type": found}}},
		Structured: agent.Object{"type": "image", "file": about},
	}
}

const noSize = "Unable to resize image — image processing is unavailable and dimensions could not be read from the file header. Please convert the image to PNG, JPEG, GIF, or WebP."
