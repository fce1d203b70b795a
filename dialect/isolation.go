package dialect

import (
	"cmp"
	"path/filepath"
)

// Isolator is a [Dialect] whose agent keeps its settings, login and transcripts in one directory, which a variable of its
// environment names. Without it, Options.Isolation "private" is a *session.ConfigError.
type Isolator interface {
	// ConfigDir returns the agent's configuration directory for these options.
	ConfigDir(o *Input) ConfigDir
	// SharedLogin returns why the agent cannot work without the login in the shared directory; empty if
	// the options, the environment or the user's settings have a key or a token. settings is the
	// content of the user's settings file, or nil.
	SharedLogin(o *Input, settings []byte) string
	// PrivateSettings returns the user's settings for a private directory.
	PrivateSettings(settings []byte) ([]byte, error)
	// PrivateLogin returns a file of ConfigDir.Login for a private directory, without what only one directory can have.
	PrivateLogin(name string, content []byte) ([]byte, error)
}

// ConfigDir is an agent's configuration directory.
type ConfigDir struct {
	Variable string   // variable that names the directory
	Path     string   // the shared directory; empty: the environment has neither the variable nor HOME
	UserFile string   // name of the file with the user's settings in it
	Copies   []string // names of further files and directories that a private directory gets, and the agent only reads
	// Login are names of further files that the agent needs for its login, and for what it has asked the user before.
	Login []string
}

// Transcriber is a [Dialect] whose agent stores its sessions on disk in a way that was observed: each line under the uuid
// that the message has on the wire, and each message of the user's under the uuid that the host gave it.
type Transcriber interface {
	// Transcripts returns where they are for these options.
	Transcripts(o *Input) Transcripts
}

// Transcripts is where an agent stores its sessions.
type Transcripts struct {
	Dir string // directory of the folders that hold the files, <folder>/<id>.jsonl; empty: it is not known
	// Live is a directory with a JSON file for each process that runs or was killed. Its member sessionId is the session. A
	// session that is named there and has no transcript was not stored: the process did not run elsewhere.
	Live string
}

// ConfigPath returns the directory that variable names in the agent's environment, or the folder in its home directory.
func (o *Input) ConfigPath(variable, folder string) string {
	given, _ := o.LookupEnv(variable)
	home, _ := o.LookupEnv("HOME")
	if home == "" {
		return given
	}
	return cmp.Or(given, filepath.Join(home, folder))
}
