package transcript_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/transcript"
)

func TestFolderName(t *testing.T) {
	t.Parallel()
	var file struct {
		Cases []struct{ Dir, Claude, Qoder string }
	}
	readJSON(t, "encoding.json", &file)
	require.Len(t, file.Cases, 16)
	for _, c := range file.Cases {
		assert.Equal(t, c.Claude, transcript.FolderName(transcript.Claude, c.Dir), c.Dir)
		assert.Equal(t, c.Qoder, transcript.FolderName(transcript.Qoder, c.Dir), c.Dir)
	}
}

func TestRoot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		vendor       transcript.Vendor
		env          map[string]string
		root, folder string
	}{
		{"home", transcript.Claude, map[string]string{"HOME": "/h", "QODER_CONFIG_DIR": "/q"}, "/h/.claude", ""},
		{"the other's home", transcript.Qoder, map[string]string{"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}, "/h/.qoder", ""},
		{"configured", transcript.Claude, map[string]string{"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}, "/c", ""},
		{"configured for Qoder", transcript.Qoder, map[string]string{"HOME": "/h", "QODER_CONFIG_DIR": "/q"}, "/q", ""},
		{"a name", transcript.Claude, map[string]string{"CLAUDE_CONFIG_DIR": "/c", "CLAUDE_CODE_PROJECT_DIR_NAME": "my_name-1"}, "/c", "my_name-1"},
		{"a name alone is ignored", transcript.Claude, map[string]string{"HOME": "/h", "CLAUDE_CODE_PROJECT_DIR_NAME": "n"}, "/h/.claude", ""},
		{"an invalid name is ignored", transcript.Claude, map[string]string{"CLAUDE_CONFIG_DIR": "/c", "CLAUDE_CODE_PROJECT_DIR_NAME": "a.b"}, "/c", ""},
		{"a device is ignored", transcript.Claude, map[string]string{"CLAUDE_CONFIG_DIR": "/c", "CLAUDE_CODE_PROJECT_DIR_NAME": "COM1"}, "/c", ""},
		{"nothing", transcript.Claude, nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			root, folder := transcript.Root(c.vendor, func(name string) string { return c.env[name] })
			assert.Equal(t, c.root, root)
			assert.Equal(t, c.folder, folder)
		})
	}
}
