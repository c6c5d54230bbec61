package ort

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runexp/runexp/stages"
)

// TestRoomOfGroups holds that the least of what the control groups above a process leave is its room, in both
// versions, in a container and outside.
func TestRoomOfGroups(t *testing.T) {
	const (
		v1 = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n" +
			"35 31 0:32 TOP /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
		v2   = "35 31 0:32 TOP /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
		none = "9223372036854771712\n"
	)
	at1, at2 := "sys/fs/cgroup/memory/", "sys/fs/cgroup/"
	for name, c := range map[string]struct {
		mine, mounts string
		files        map[string]string
		free         int64 // 0 for unbounded
		of           string
	}{
		"version 2, nested: the middle one is full": {
			"0::/a/b/c\n", strings.Replace(v2, "TOP", "/", 1), map[string]string{
				at2 + "a/memory.max": "9000\n", at2 + "a/memory.current": "5000\n",
				at2 + "a/b/memory.max": "6000\n", at2 + "a/b/memory.current": "5000\n",
				at2 + "a/b/memory.stat":  "anon 1\ninactive_file 300\nactive_file 200\n",
				at2 + "a/b/c/memory.max": "max\n", at2 + "a/b/c/memory.current": "5000\n",
			}, 1500, "the control group /a/b has left of its 6e-06 GB"},
		"version 2: high is a limit": {
			"0::/a\n", strings.Replace(v2, "TOP", "/", 1), map[string]string{
				at2 + "a/memory.max": "max\n", at2 + "a/memory.high": "700\n",
				at2 + "a/memory.current": "500\n"}, 200, "the control group /a has"},
		"version 2, a container's own name space": {
			"0::/\n", strings.Replace(v2, "TOP", "/", 1), map[string]string{
				at2 + "memory.max": "700\n", at2 + "memory.current": "500\n"}, 200,
			"the control group / has"},
		"version 2, a name above what is mounted": {
			"0::/../other\n", strings.Replace(v2, "TOP", "/", 1), map[string]string{
				at2 + "memory.max": "700\n", at2 + "memory.current": "500\n"}, 200,
			"the control group / has"},
		"version 1, as Slurm nests them": {
			"9:name=systemd:/\n4:cpuset,memory:/slurm/job_1/step_0\n0::/\n", strings.Replace(v1, "TOP",
				"/", 1),
			map[string]string{
				at1 + "memory.limit_in_bytes": none, at1 + "memory.usage_in_bytes": "99999\n",
				at1 + "slurm/job_1/memory.limit_in_bytes": "8000\n",
				at1 + "slurm/job_1/memory.usage_in_bytes": "7000\n",
				at1 + "slurm/job_1/memory.stat": "inactive_file 5\ntotal_inactive_file " +
					"100\n",
				at1 + "slurm/job_1/step_0/memory.limit_in_bytes": none,
			}, 1100, "the control group /slurm/job_1 has left of its 8e-06 GB"},
		"version 1 in a container that sees its group alone": {
			"4:memory:/docker/abc\n0::/docker/abc\n", strings.Replace(v1, "TOP", "/docker/abc", 1),
			map[string]string{at1 + "memory.limit_in_bytes": "800\n", at1 + "memory.usage_in_bytes": "700\n"},
			100, "the control group /docker/abc has"},
		"hybrid: memory is in version 1": {
			"4:memory:/x\n0::/y\n", strings.Replace(v1, "TOP", "/", 1) +
				"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			map[string]string{at1 + "x/memory.limit_in_bytes": "800\n", at1 +
				"x/memory.usage_in_bytes": "900\n",
				at2 + "unified/y/cgroup.procs": "1\n"}, -1, "the control group /x has"},
		"a folder with a space in its name": {
			"0::/a b\n", strings.Replace(strings.Replace(v2, "TOP", "/", 1), "/sys/fs/cgroup",
				`/sys/c\040g`, 1),
			map[string]string{"sys/c g/a b/memory.max": "700\n", "sys/c g/a b/memory.current": "500\n"},
			200, "the control group /a b has"},
		"no limit": {"0::/a\n", strings.Replace(v2, "TOP", "/", 1),
			map[string]string{at2 + "a/memory.max": "max\n"}, 0, ""},
		"no groups": {"", "", nil, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write := func(path, text string) {
				path = filepath.Join(root, path)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777),
					os.WriteFile(path, []byte(text), 0o666)); err != nil {
					t.Fatal(err)
				}
			}
			write("proc/self/cgroup", c.mine)
			write("proc/self/mountinfo", c.mounts)
			for path, text := range c.files {
				write(path, text)
			}
			want := c.free
			switch want {
			case 0:
				want = unbounded.Free
			case -1:
				want = 0
			}
			r := newRoomer(root)
			if got := r.inGroups(); got.Free != want || !strings.HasPrefix(got.Of, c.of) {
				t.Errorf("free %d of %q, want %d of %q", got.Free, got.Of, want, c.of)
			}
			write("proc/meminfo", "MemTotal:  1 kB\nMemAvailable:    1 kB\n")
			if got := r.shared(); got.Free != min(want, 1024) {
				t.Errorf("with a machine that has 1024 bytes, free is %d", got.Free)
			}
		})
	}
}

// A fakeRoom is memory of so many bytes, of which programs take some.
type fakeRoom struct {
	mu         sync.Mutex
	size, used int64
}

func (f *fakeRoom) take(n int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used += n
	return f.used
}

func (f *fakeRoom) room() Room { return Room{f.size - f.take(0), f.size, "it has left"} }

// TestAccount holds that runs whose memory is there run at once, that others wait for these, that one which
// never fits is refused with the figures, and that at no time more is taken than there is.
func TestAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRoom{size: 1000 << 20}
		a := newAccount(f.room, func() int64 { return 0 })
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				need := int64(20+i) << 20
				ctx, leave, err := a.admit(t.Context(), need, largeRun)
				if err != nil {
					t.Error(err)
					return
				}
				if f.take(overLarge*need) > f.size {
					t.Errorf("more is taken than there is")
				}
				time.Sleep(time.Second)
				if ctx.Err() != nil {
					t.Error(context.Cause(ctx))
				}
				f.take(-overLarge * need)
				leave()
			})
		}
		wg.Wait()
		if f.take(0) != 0 || a.others != 0 || len(a.runs) != 0 {
			t.Errorf("%d bytes are still taken, %d runs", a.others, len(a.runs))
		}
		_, _, err := a.admit(t.Context(), 900<<20, largeRun)
		var s *Short
		if !errors.As(err, &s) || !errors.Is(err, stages.ErrOutOfMemory) || s.Need != 900<<20 ||
			!strings.Contains(err.Error(), "it needs 944 MB, and 1.02 GB is all that it has left") {
			t.Errorf("a run that doesn't fit: %v", err)
		}
		if _, leave, err := a.admit(t.Context(), 600<<20, largeRun); err != nil {
			t.Errorf("a run that fits if nothing else runs: %v", err)
		} else {
			leave()
		}
		a.most = 10 << 20
		if _, _, err := a.admit(t.Context(), 11<<20, pooledRun); err == nil ||
			!strings.Contains(err.Error(), "$RUNEXP_MODEL_MEMORY allows") {
			t.Errorf("a run beyond the variable's limit: %v", err)
		}
		time.Sleep(time.Second) // for the watch
	})
}

// TestAccountCountsWhatIsKept holds that what the library keeps of small runs is there for later ones.
func TestAccountCountsWhatIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRoom{size: 1000 << 20}
		a := newAccount(f.room, func() int64 { return f.take(0) })
		for range 3 {
			_, leave, err := a.admit(t.Context(), 200<<20, pooledRun)
			if err != nil {
				t.Fatal(err)
			}
			if f.take(0) == 0 {
				f.take(700 << 20) // and keeps it
			}
			leave()
		}
		time.Sleep(time.Second)
	})
}

// TestAccountEndsRuns holds that the largest run ends, for lack of memory, when nothing is left because of
// what this process takes.
func TestAccountEndsRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRoom{size: 1000 << 20}
		a := newAccount(f.room, func() int64 { return f.take(0) })
		small, leaveSmall, err := a.admit(t.Context(), 1<<20, pooledRun)
		if err != nil {
			t.Fatal(err)
		}
		large, leave, err := a.admit(t.Context(), 2<<20, pooledRun)
		if err != nil {
			t.Fatal(err)
		}
		f.take(990 << 20)
		<-large.Done()
		if err := context.Cause(large); !errors.Is(err, stages.ErrOutOfMemory) || small.Err() != nil {
			t.Errorf("the larger run ended with %v, the other with %v", err, small.Err())
		}
		f.take(-990 << 20)
		leave()
		leaveSmall()
		time.Sleep(time.Second)
	})
}

// TestAccountIsLeft holds that who waits for room goes when it is asked to.
func TestAccountIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRoom{size: 1000 << 20}
		a := newAccount(f.room, func() int64 { return 0 })
		_, leave, err := a.admit(t.Context(), 300<<20, largeRun)
		if err != nil {
			t.Fatal(err)
		}
		f.take(900 << 20)
		stop := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stop) })
		if _, _, err := a.admit(ctx, 300<<20, largeRun); err != stop {
			t.Errorf("the one who waited has %v", err)
		}
		f.take(-900 << 20)
		leave()
		time.Sleep(time.Second)
	})
}
