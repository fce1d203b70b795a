package sdk

import (
	"os"

	"github.com/agent-troupe/troupe/agent/cloud"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// CloudCleanup returns what archives and deletes the agents and sessions that sessions with
// these options have created in Qoder's cloud; a session.CloudOpened event has their ids. Of the
// options it uses Backend, Auth, Env, UnsetEnv, CleanEnv, and that ExperimentalCloudAgent is set
// where Backend is nil. It needs no session, and none may use what it removes. Options that are
// not those of the cloud, or have no access token, are a [ConfigError].
func CloudCleanup(o *Options) (*cloud.Cleanup, error) {
	data := dialect.Input{Options: *o, Facts: dialect.Facts{ParentEnv: os.Environ()}}
	backend, err := choose(o.Backend, &data, o.Spawner != nil)
	switch {
	case err != nil:
		return nil, err
	case backend.cloud == nil:
		return nil, &ConfigError{Option: "Backend", Backend: backend.dialect.Name(), Problem: "does not run in the cloud", Fix: "use sdk.QoderCloud"}
	}
	if _, err := qoder.AccessToken(&data); err != nil {
		return nil, &ConfigError{Option: "Auth", Backend: qoder.Name, Problem: err.Error(), Fix: "use session.AccessToken or session.AccessTokenFromEnv"}
	}
	return cloud.NewCleanup(*backend.cloud, cloud.Host{Clock: kernel.NewClock(nil), Exec: kernel.GoExecutor{}, Rand: kernel.NewRand(nil)}), nil
}
