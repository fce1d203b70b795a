package fleet

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"

	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/sdk"
)

// labels are those by which runtime.Admission may limit the task's sessions.
func (r *runner) labels(t *Task) map[string]string {
	all := map[string]string{"account": r.account}
	if name := backendName(r.job.Options); name != "" {
		all["agent"] = name
	}
	maps.Copy(all, t.Labels)
	return all
}

// accountOf is the default of Job.Account: the backend, and a hash of the variables that
// say which provider its agents use and who they are, or where their login is.
func accountOf(o *sdk.Options) string {
	name := backendName(o)
	var names []string
	switch name {
	case claude.Name:
		names = claude.New().Traits().ProviderEnv
	case qoder.Name:
		names = qoder.New().Traits().ProviderEnv
	case "":
		name = "agent"
	}
	all := sha256.New()
	for _, v := range names {
		value, ok := o.Env[v]
		if !ok {
			value = os.Getenv(v)
		}
		_, _ = all.Write([]byte(v + "=" + value + "\x00")) // it never fails
	}
	const digits = 8 // so few tell accounts apart, and nothing of a value
	return name + "-" + hex.EncodeToString(all.Sum(nil))[:digits]
}
