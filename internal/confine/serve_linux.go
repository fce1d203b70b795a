package confine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	kernel "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// minVersion is the first version of Landlock that confines all writes: before it, files could
// be truncated. It is that of Linux 6.2.
const minVersion = 3

// Available returns nil if the kernel can confine commands, or an error that wraps
// [errors.ErrUnsupported].
func Available() error {
	switch v, err := kernel.LandlockGetABIVersion(); {
	case err != nil:
		return fmt.Errorf("this kernel has no Landlock, or it is switched off (%w): %w", err, errors.ErrUnsupported)
	case v < minVersion:
		return fmt.Errorf("this kernel has version %d of Landlock, and %d is needed (Linux 6.2): %w", v, minVersion, errors.ErrUnsupported)
	}
	return nil
}

const (
	readFile  = kernel.AccessFSExecute | kernel.AccessFSReadFile
	writeFile = readFile | kernel.AccessFSWriteFile | kernel.AccessFSTruncate
	// A device that is made would lead to all of a disk.
	writeDir = writeFile | kernel.AccessFSReadDir | kernel.AccessFSRemoveDir | kernel.AccessFSRemoveFile | kernel.AccessFSMakeDir |
		kernel.AccessFSMakeReg | kernel.AccessFSMakeSock | kernel.AccessFSMakeFifo | kernel.AccessFSMakeSym | kernel.AccessFSRefer
	// allV3 are the rights of version 3.
	allV3 = writeDir | kernel.AccessFSMakeChar | kernel.AccessFSMakeBlock
)

// config is what the kernel confines: what minVersion has, and what it has beyond that. Devices
// get no ioctl, with which a terminal could be given input. Sockets in the file system, with
// which daemons could be asked to do what the command may not, are refused from version 9 on;
// signals to other processes, and abstract sockets, from version 6 on.
func config() (landlock.Config, error) {
	v, err := kernel.LandlockGetABIVersion()
	if err != nil {
		return landlock.Config{}, err
	}
	c := landlock.Config{HandledAccessFS: allV3}
	if v >= 5 {
		c.HandledAccessFS |= kernel.AccessFSIoctlDev
	}
	if v >= 6 {
		c.Scoped = kernel.ScopeSignal | kernel.ScopeAbstractUnixSocket
	}
	if v >= 9 {
		c.HandledAccessFS |= kernel.AccessFSResolveUnix
	}
	return c, nil
}

// exec confines the thread and executes argv. It returns only if it fails.
func (r Rules) exec(argv, env []string) error {
	if err := Available(); err != nil {
		return err
	}
	c, err := config()
	if err != nil {
		return err
	}
	fd, flags, err := c.NewRulesetFD()
	if err != nil {
		return err
	}
	if err := errors.Join(
		grant(fd, kernel.AccessFSReadDir, "/"), grant(fd, readFile, r.Read...), grant(fd, writeDir, r.Write...),
		grant(fd, readFile, r.ReadFiles...), grant(fd, writeFile, r.WriteFiles...),
		grant(fd, kernel.AccessFSWriteFile|kernel.AccessFSTruncate, "/dev/null", "/dev/zero", "/dev/full"),
	); err != nil {
		return err
	}
	runtime.LockOSThread()                                                                       // the thread becomes the command
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil { // that of the first thread is lost
		return err
	}
	if os.Getppid() != r.Parent {
		return errors.New("the program that started it has ended")
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil { // required of all users but root
		return err
	}
	if err := weaken(); err != nil {
		return err
	}
	if err := kernel.LandlockRestrictSelf(fd, flags); err != nil {
		return fmt.Errorf("landlock_restrict_self: %w", err)
	}
	return fmt.Errorf("execute %s: %w", argv[0], syscall.Exec(argv[0], argv, env))
}

// grant adds rights for paths to a ruleset. No link on a path is followed: a command that began
// earlier, with other rules, may have put one there since the paths were listed.
func grant(ruleset int, access uint64, paths ...string) error {
	for _, path := range paths {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
		switch {
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP), errors.Is(err, unix.EACCES):
			continue // it has gone, or is closed to this user
		case err != nil:
			return fmt.Errorf("open %s: %w", path, err)
		}
		err = kernel.LandlockAddPathBeneathRule(ruleset, &kernel.PathBeneathAttr{AllowedAccess: access, ParentFd: fd}, 0)
		_ = unix.Close(fd) // it was only named
		if err != nil {
			return fmt.Errorf("landlock_add_rule %s: %w", path, err)
		}
	}
	return nil
}

// weaken takes from the thread the capabilities that lead around the rules: those for the memory
// and the environment of other processes, devices, mounts, modules. Those for files, users and
// ports stay. no_new_privs keeps the command of root from getting them back.
func weaken() error {
	keep := uint64(0)
	for _, capability := range []int{
		unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID,
		unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SETFCAP,
	} {
		keep |= 1 << capability
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData // 32 capabilities each
	if err := unix.Capget(&head, &has[0]); err != nil {
		return fmt.Errorf("capget: %w", err)
	}
	for i := range has {
		kept := uint32(keep >> (32 * i)) // a half of it
		has[i].Effective &= kept
		has[i].Permitted &= kept
		has[i].Inheritable &= kept
	}
	if err := unix.Capset(&head, &has[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	return nil
}

// isOwn reports whether a directory is this user's, who can change its mode.
func isOwn(dir string) bool {
	var s unix.Stat_t
	return unix.Stat(dir, &s) == nil && int(s.Uid) == os.Geteuid()
}
