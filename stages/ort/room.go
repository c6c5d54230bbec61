package ort

import (
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// A Room is how much more memory this process may take, in bytes, and the tightest limit.
type Room struct {
	Free int64 // math.MaxInt64 if the system doesn't say
	Size int64 // the limit itself
	Of   string
}

// unbounded is the room if the system doesn't say.
var unbounded = Room{Free: math.MaxInt64, Size: math.MaxInt64}

// least returns the smallest room.
func least(rooms ...Room) Room {
	least := unbounded
	for _, r := range rooms {
		if r.Free < least.Free {
			least = r
		}
	}
	least.Free = max(0, least.Free)
	return least
}

// reserve is the part of a room that no program may take: it is left for everything else.
func (r Room) reserve() int64 { return min(r.Size/32, 256<<20) }

// A roomer measures the room of this process.
type roomer struct {
	root   string // of the file system; "" except in tests
	groups []group
}

// A group is a control group that bounds this process.
type group struct {
	name string
	dir  string // the group's folder
	*hierarchy
}

// A hierarchy is a version of control groups: its files for the limit and for the memory taken, and the
// rows of memory.stat that the system reclaims when other processes need memory.
type hierarchy struct {
	limits  []string
	taken   string
	caches  []string
	version int
}

var (
	hierarchy1 = &hierarchy{[]string{"memory.limit_in_bytes"}, "memory.usage_in_bytes",
		[]string{"total_inactive_file", "total_active_file"}, 1}
	hierarchy2 = &hierarchy{[]string{"memory.max", "memory.high"}, "memory.current",
		[]string{"inactive_file", "active_file"}, 2}
)

// newRoomer finds the control groups that bound this process: in each hierarchy with a memory controller
// its own group and all groups above that it can see. There are none outside Linux.
func newRoomer(root string) *roomer {
	r := &roomer{root: root}
	mine := map[*hierarchy]string{}
	for line := range strings.Lines(r.read("/proc/self/cgroup")) {
		// number:controllers:path
		number, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, name, ok := strings.Cut(rest, ":")
		switch {
		case !ok:
		case number == "0" && controllers == "":
			mine[hierarchy2] = name
		case listed(controllers, "memory"):
			mine[hierarchy1] = name
		}
	}
	for line := range strings.Lines(r.read("/proc/self/mountinfo")) {
		mount, super, _ := strings.Cut(line, " - ")
		f, s := strings.Fields(mount), strings.Fields(super)
		if len(f) < 5 || len(s) < 3 {
			continue
		}
		h := hierarchy2
		if s[0] == "cgroup" && listed(s[2], "memory") {
			h = hierarchy1
		} else if s[0] != "cgroup2" {
			continue
		}
		if name, ok := mine[h]; ok {
			r.add(h, unescaped(f[4]), unescaped(f[3]), name)
			delete(mine, h)
		}
	}
	return r
}

// add adds the group of a name and those above it. The group top is mounted at the folder mounted. In a
// container the name may not be below top; then the process sees only top.
func (r *roomer) add(h *hierarchy, mounted, top, name string) {
	below, ok := strings.CutPrefix(path.Clean(name)+"/", strings.TrimSuffix(path.Clean(top), "/")+"/")
	if !ok {
		below = ""
	}
	for below = path.Clean("/" + below); ; below = path.Dir(below) {
		r.groups = append(r.groups, group{path.Join(top, below), path.Join(mounted, below), h})
		if below == "/" {
			return
		}
	}
}

// inGroups returns the least room of all groups; unbounded if none has a limit.
func (r *roomer) inGroups() Room {
	least := unbounded
	for _, g := range r.groups {
		for _, file := range g.limits {
			limit, err := strconv.ParseInt(strings.TrimSpace(r.read(path.Join(g.dir, file))), 10, 64)
			// "max", or the largest number that the system can count
			if err != nil || limit >= math.MaxInt64>>1 {
				continue
			}
			taken, err := strconv.ParseInt(strings.TrimSpace(r.read(path.Join(g.dir, g.taken))), 10, 64)
			if err != nil {
				continue
			}
			stat := r.read(path.Join(g.dir, "memory.stat"))
			for _, row := range g.caches {
				taken -= number(stat, row+" ")
			}
			if free := max(0, limit-max(0, taken)); free < least.Free {
				least = Room{free, limit, fmt.Sprintf("the control group %s has left of its %.3g GB", g.name,
					gb(limit))}
			}
		}
	}
	return least
}

// ofMachine returns the room of all processes together.
func (r *roomer) ofMachine() Room {
	info := r.read("/proc/meminfo")
	free, size := number(info, "MemAvailable:")<<10, number(info, "MemTotal:")<<10
	if size == 0 {
		return unbounded
	}
	return Room{free, size, "the machine has left"}
}

// shared returns the room of this process and its workers together.
func (r *roomer) shared() Room { return least(r.ofMachine(), r.inGroups()) }

// room returns the room of this process.
func (r *roomer) room() Room {
	status := r.read("/proc/self/status")
	return least(append(limits(number(status, "VmSize:")<<10, number(status, "VmData:")<<10), r.shared())...)
}

// residentMemory returns how many bytes this process takes, 0 if the system doesn't say.
func residentMemory() int64 { return ofProcess("VmRSS:") }

// ofProcess returns the bytes in a row of the process's /proc/self/status.
func ofProcess(row string) int64 {
	b, _ := os.ReadFile("/proc/self/status")
	return number(string(b), row) << 10
}

func (r *roomer) read(file string) string {
	b, _ := os.ReadFile(filepath.Join(r.root, file)) // a missing file has no rows
	return string(b)
}

// number returns the number in a row of one of the system's tables, 0 without such a row.
func number(table, row string) (n int64) {
	for line := range strings.Lines(table) {
		if after, ok := strings.CutPrefix(line, row); ok {
			_, _ = fmt.Sscan(after, &n)
			return n
		}
	}
	return 0
}

func listed(list, name string) bool {
	for s := range strings.SplitSeq(list, ",") {
		if s == name {
			return true
		}
	}
	return false
}

// unescaped decodes a path of mountinfo, which has white space and backslashes as octal numbers.
func unescaped(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

func gb(bytes int64) float64 { return float64(bytes) / 1e9 }
