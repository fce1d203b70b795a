package dialect

import (
	"encoding/json"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

// SettingsMode is a permission mode that settings set.
type SettingsMode struct {
	At   string // the dotted path of the setting
	Mode protocol.PermissionMode
}

// SettingsModes returns the permission modes that settings set: permissions.defaultMode, and Qoder's
// general.defaultPermissionMode, which spells them differently (bypass_permissions). It returns none if the settings set
// no mode or cannot be read.
func SettingsModes(settings []byte) []SettingsMode {
	var doc map[string]json.RawMessage // no struct, whose names would match in any case
	if json.Unmarshal(settings, &doc) != nil {
		return nil
	}
	var modes []SettingsMode
	for _, at := range [...][2]string{{"permissions", "defaultMode"}, {"general", "defaultPermissionMode"}} {
		var object map[string]json.RawMessage
		var mode string
		if json.Unmarshal(doc[at[0]], &object) != nil || json.Unmarshal(object[at[1]], &mode) != nil || mode == "" {
			continue
		}
		modes = append(modes, SettingsMode{At: at[0] + "." + at[1], Mode: inOneWord(mode)})
	}
	return modes
}

func inOneWord(mode string) protocol.PermissionMode {
	words := strings.Split(mode, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return protocol.PermissionMode(strings.Join(words, ""))
}

// SkipsPermissions reports whether a mode skips every permission check. Such a mode needs
// AllowDangerouslySkipPermissions.
func SkipsPermissions(mode protocol.PermissionMode) bool {
	return mode == "bypassPermissions" || mode == "yolo"
}
