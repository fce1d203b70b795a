package claude

import _ "github.com/agent-troupe/troupe/internal/actors/routing"
