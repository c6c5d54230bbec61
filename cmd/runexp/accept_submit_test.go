package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runexp/runexp/pipeline"
	"github.com/runexp/runexp/pipeline/plan"
	"github.com/runexp/runexp/stages/stagetest"
)

// twoWaves needs no runtime. What mixes reads the means, which need all images: that is a second wave.
const twoWaves = `name: waves
stages:
  images: {uses: dataset/shapes, with: {count: 12, size: 16}}
  noisy:  {uses: perturb/noise, in: {images: images}}
  means:  {uses: dataset/mean, in: {images: noisy}}
  mixed:  {uses: perturb/noise, in: {images: means}}
publish: [images, mixed]
`

// The fakes of Slurm's commands. Each writes a line of $CALLS. sbatch keeps the scripts that it is given, and
// refuses to take more than $REFUSE; with $EXECUTE it executes them at once, an array's one after the other.
const (
	fakeBatch = `#!/bin/bash
n=$(($(grep -c '^sbatch' "$CALLS" 2>/dev/null) + 1))
echo "sbatch $*" >>"$CALLS"
if [ "$n" -gt "${REFUSE:-1000}" ]; then
	echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy" >&2
	exit 1
fi
cat >"$CALLS.$n"
job=$((100 + n))
if [ -n "$EXECUTE" ]; then
	last=0
	for arg in "$@"; do
		case $arg in --array=0-*) last=${arg#--array=0-} last=${last%%%*} array=yes ;; esac
	done
	for ((task = 0; task <= last; task++)); do
		[ -z "$array" ] || export SLURM_ARRAY_JOB_ID=$job SLURM_ARRAY_TASK_ID=$task
		(cd / && SLURM_JOB_ID=$job bash "$CALLS.$n") >>"$CALLS.out" 2>&1 ||
			echo "job $job: $?" >>"$CALLS.failed"
	done
fi
echo "$job;here"
`
	fakeQueue = `#!/bin/bash
echo "squeue $*" >>"$CALLS"
if [ -n "$SILENT" ]; then
	echo "slurm_load_jobs error: Unable to contact slurm controller (connect failure)" >&2
	exit 1
fi
cat "$CALLS.queue" 2>/dev/null
exit 0
`
	fakeControl = "#!/bin/bash\necho \"scontrol $*\" >>\"$CALLS\"\necho 'MaxArraySize            = 9'\n"
)

// newCluster returns a world, in a folder whose name needs quotes, with Slurm's commands in PATH.
func newCluster(t testing.TB, files map[string]string) *world {
	t.Helper()
	w := newWorld(t, nil)
	w.fakeSlurm()
	path := w.path("bin") + string(os.PathListSeparator) + os.Getenv("PATH")
	w.env = append(w.env, "PATH="+path, "CALLS="+w.path("calls"))
	w.dir = w.path("it's here")
	for name, text := range files {
		w.write(name, []byte(text))
	}
	return w
}

// fakeSlurm writes the fakes of Slurm's commands.
func (w *world) fakeSlurm() {
	w.Helper()
	w.fake("sbatch", fakeBatch)
	w.fake("squeue", fakeQueue)
	w.fake("scontrol", fakeControl)
}

// fake writes a program into bin.
func (w *world) fake(name, text string) {
	w.Helper()
	w.write("bin/"+name, []byte(text))
	if err := os.Chmod(w.path("bin/"+name), 0o755); err != nil {
		w.Fatal(err)
	}
}

// calls returns the calls of the fakes since the last time.
func (w *world) calls() (lines []string) {
	w.Helper()
	file := filepath.Join(filepath.Dir(w.dir), "calls")
	b, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	if err := os.Remove(file); err != nil {
		w.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

func TestSubmit(t *testing.T) {
	w := newCluster(t, map[string]string{"x.yaml": twoWaves})
	e := w.run(0, "submit", "x.yaml", "--slurm", "--devices", "2", "--shares", "5", "--", "-p", "gpu",
		"-t", "4")
	const want = "wave 1, 5 shares: job 101\nclose wave 1: job 102\n" +
		"wave 2, 5 shares: job 103\nclose wave 2: job 104\n"
	if e.stdout != want {
		t.Errorf("it prints\n%swant\n%s", e.stdout, want)
	}
	calls := w.calls()
	if len(calls) != 6 {
		t.Fatalf("%d calls for two waves: %q", len(calls), calls)
	}
	for i, pattern := range []string{
		`^scontrol show config$`,
		`^squeue --noheader --name=(runexp-waves-[0-9a-f]{8})-1,(.*)-1-close,(.*)-2,(.*)-2-close ` +
			`--format=%F %j$`,
		`^sbatch --array=0-4%2 --parsable --job-name=\S+-1 --requeue --open-mode=append ` +
			`--output=/.*/it's here/.runexp/slurm/%x-%A_%a.out --signal=B:TERM@60 -p gpu -t 4$`,
		`^sbatch --dependency=afterany:101,singleton --parsable --job-name=\S+-1-close .* -p gpu -t 4$`,
		`^sbatch --dependency=afterany:102 --array=0-4%2 --parsable --job-name=\S+-2 `,
		`^sbatch --dependency=afterany:103,singleton --parsable --job-name=\S+-2-close `,
	} {
		if !regexp.MustCompile(pattern).MatchString(calls[i]) {
			t.Errorf("call %d is %q, want %s", i, calls[i], pattern)
		}
	}
}

// An array is as long as the cluster allows, and no longer than there are images.
func TestSharesAreLimited(t *testing.T) {
	w := newCluster(t, map[string]string{"x.yaml": twoWaves})
	for count, want := range map[string]string{"6": "wave 1, 6 shares", "100": "wave 1, 9 shares"} {
		e := w.run(0, "submit", "x.yaml", "--slurm", "--devices", "20", "--set", "images.with.count="+count)
		if !strings.HasPrefix(e.stdout, want) {
			t.Errorf("%s images: %swant %s", count, e.stdout, want)
		}
	}
}

// Devices end together, and numbers of shares divide one another.
func TestSharesOf(t *testing.T) {
	cells := make([]*plan.Cell, 10)
	for _, c := range []struct {
		devices, unknown, origins int
		time                      time.Duration
		options                   string
		want                      int
	}{
		{0, 0, 5000, time.Minute, "", 1},
		{0, 0, 5000, 3 * 8 * time.Minute, "", 4},
		{48, 0, 5000, time.Minute, "", 48},
		{48, 0, 5000, 49 * 8 * time.Minute, "", 96},
		{48, 0, 5000, 1000 * time.Hour, "", 768},
		{0, 0, 5000, 1000 * time.Hour, "", 512},
		{2000, 0, 5000, 1000 * time.Hour, "", 1001},
		{64, 0, 50, 1000 * time.Hour, "", 50},
		{4, 0, 5000, 8 * 8 * time.Minute, "--time=4", 32},
		{4, 0, 5000, 8 * 8 * time.Minute, "-c8", 4},
		{4, 5, 5000, 8 * time.Minute, "", 64},
		{16, 9, 5000, 8 * time.Minute, "", 128},
		{4, 2, 5000, 8 * 8 * time.Minute, "", 16}, // eight cells take as long as eight shares
	} {
		w := &pipeline.Wave{Cells: cells}
		w.Missing.Seconds, w.Missing.Unknown = c.time.Seconds(), c.unknown
		f := submitFlags{devices: c.devices}
		got := f.sharesOf(w, c.origins, defaultArray, &slurm{options: strings.Fields(c.options)})
		if got != c.want {
			t.Errorf("%+v: %d shares", c, got)
		}
	}
}

// Jobs on GPUs compute there, whatever is here.
func TestSubmitGPUs(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "-1")
	w := newCluster(t, map[string]string{"x.yaml": twoWaves})
	e := w.run(0, "submit", "x.yaml", "--slurm", "--", "--gres=gpu:1")
	if !strings.HasPrefix(e.stdout, "wave 1, 8 shares") {
		t.Errorf("it prints\n%s%s", e.stdout, e.stderr)
	}
	if script := w.read("../calls.3"); !strings.Contains(script, " --devices cuda --share ") {
		t.Errorf("the job is\n%s", script)
	}
}

// After a refusal the same command submits the rest, to begin after what is queued; what is queued isn't
// submitted again.
func TestSubmitAgain(t *testing.T) {
	w := newCluster(t, map[string]string{"x.yaml": twoWaves})
	env := w.env
	w.env = append(w.env, "REFUSE=1")
	e := w.run(exitEnvironment, "submit", "x.yaml", "--slurm")
	if e.stdout != "wave 1, 8 shares: job 101\n" || !strings.Contains(e.stderr,
		"runexp: sbatch: error: Batch job submission failed: Job violates accounting/QOS policy; "+
			"1 of 4 jobs are queued\n") ||
		!strings.Contains(e.stderr, "hint: the same command submits the rest") {
		t.Errorf("it prints\n%s%s", e.stdout, e.stderr)
	}
	w.env = env
	var names []string
	for _, c := range w.calls() {
		if _, after, ok := strings.Cut(c, "--job-name="); ok {
			name, _, _ := strings.Cut(after, " ")
			names = append(names, name)
		}
	}
	first, closer := names[0], names[0]+"-close"
	queue := func(lines ...string) {
		w.write("../calls.queue", []byte(strings.Join(lines, "\n")+"\n"))
	}
	queue("55 "+first, "55 "+first)
	e = w.run(0, "submit", "x.yaml", "--slurm")
	const want = "wave 1, 8 shares: queued already, job 55\nclose wave 1: job 101\n"
	if !strings.HasPrefix(e.stdout, want) {
		t.Errorf("it prints\n%swant\n%s", e.stdout, want)
	}
	if calls := w.calls(); len(calls) != 5 || !strings.Contains(calls[2], "=afterany:55,singleton") {
		t.Errorf("calls: %q", calls)
	}
	w.env = append(w.env, "SILENT=yes")
	e = w.run(exitEnvironment, "submit", "x.yaml", "--slurm")
	if calls := w.calls(); len(calls) != 2 || !strings.Contains(e.stderr,
		"(connect failure): whether jobs are queued already isn't known\nhint: nothing was submitted") {
		t.Errorf("without an answer of squeue: %scalls: %q", e.stderr, calls)
	}
	w.env = env
	queue("56 "+closer, "57 "+strings.TrimSuffix(first, "1")+"2-close")
	e = w.run(0, "submit", "x.yaml", "--slurm")
	if calls := w.calls(); len(calls) != 2 || !strings.Contains(e.stderr, "nothing was submitted") {
		t.Errorf("%s%scalls: %q", e.stdout, e.stderr, calls)
	}
}

// A dry run needs no Slurm and writes nothing. Its script submits what submit would.
func TestSubmitDry(t *testing.T) {
	w := newCluster(t, map[string]string{"an x.yaml": twoWaves})
	env := w.env
	args := []string{"submit", "an x.yaml", "--slurm", "--dry-run", "--devices", "2", "--shares", "5",
		"--set", "title=it's \"$HOME\"\nRUNEXP\n`false`", "--store", "the store", "--", "-p", "gpu",
		"--comment", "a b"}
	self, err := exec.LookPath("runexp")
	if err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "PATH="+filepath.Dir(self)) // the last one counts
	e := w.run(exitEnvironment, "submit", "an x.yaml", "--slurm")
	if !strings.Contains(e.stderr, "no sbatch in PATH") ||
		!strings.Contains(e.stderr, "hint: submit where Slurm's commands are") {
		t.Errorf("without sbatch: %s", e.stderr)
	}
	before := w.listing()
	e = w.run(0, args...)
	if after := w.listing(); after != before {
		t.Errorf("a dry run wrote\n%s\nbefore\n%s", after, before)
	}
	w.env = env
	w.write("jobs.sh", []byte(e.stdout))
	if out := w.command("bash", "-n", "jobs.sh"); out.code != 0 {
		t.Errorf("bash -n: %s", out.stderr)
	}
	if out := w.command("bash", "jobs.sh"); out.stdout != "101\n102\n103\n104\n" {
		t.Errorf("the script prints %q, %s", out.stdout, out.stderr)
	}
	dry := w.calls()
	for n := 1; n <= 4; n++ {
		if out := w.command("bash", "-n", fmt.Sprintf("../calls.%d", n)); out.code != 0 {
			t.Errorf("bash -n: %s", out.stderr)
		}
	}
	w.run(0, append(args[:3:3], args[4:]...)...)
	if wet := w.calls(); strings.Join(wet[2:], "\n") != strings.Join(dry, "\n") {
		t.Errorf("a dry run's script calls\n%s\nsubmit\n%s", strings.Join(dry, "\n"),
			strings.Join(wet[2:], "\n"))
	}
}

func TestSubmitMisuse(t *testing.T) {
	w := newCluster(t, map[string]string{"x.yaml": twoWaves})
	for want, args := range map[string][]string{
		"submit needs an experiment file":                       {"--slurm"},
		"submit needs the name of the scheduler: --slurm":       {"x.yaml"},
		`options of sbatch after --: "y.yaml"`:                  {"x.yaml", "y.yaml", "--slurm"},
		"--array of sbatch can't be given":                      {"x.yaml", "--slurm", "--", "--array=0-3"},
		"--job=foo of sbatch can't be given: it is --job-name":  {"x.yaml", "--slurm", "--", "--job=foo"},
		"the experiment file comes before --, and options":      {"--slurm", "--", "-p", "gpu"},
		"nowhere.yaml: no such file or directory":               {"nowhere.yaml", "--slurm"},
		"unknown flag --slrum\nhint: did you mean \"--slurm\"?": {"x.yaml", "--slrum"},
	} {
		if e := w.run(exitUsage, append([]string{"submit"}, args...)...); !strings.Contains(e.stderr, want) {
			t.Errorf("%q: %swant %s", args, e.stderr, want)
		}
	}
}

// With nothing missing, submit does what the last job would.
func TestSubmitNothing(t *testing.T) {
	w := newCluster(t, map[string]string{"x.yaml": twoWaves})
	const nothing = "4 cells, all cached: nothing to submit\n"
	w.run(0, "run", "x.yaml", "--quiet", "--out", "elsewhere")
	before := w.listing()
	e := w.run(0, "submit", "x.yaml", "--slurm", "--dry-run")
	if e.stdout != nothing || w.listing() != before {
		t.Errorf("a dry run prints %q", e.stdout)
	}
	for _, want := range []string{"artifacts/waves: new: ", "artifacts/waves: up to date\n"} {
		if e := w.run(0, "submit", "x.yaml", "--slurm"); !strings.HasPrefix(e.stdout, nothing+want) {
			t.Errorf("it prints %q, want %q", e.stdout, want)
		}
	}
	same(t, w.path("elsewhere"), w.path("artifacts/waves"))
	if calls := w.calls(); calls != nil {
		t.Errorf("calls: %q", calls)
	}
}

// A job hands SIGTERM on, waits for the program, and is queued again if that was drained.
func TestJobDrains(t *testing.T) {
	for _, c := range []struct {
		ends, env, want string
		code            int
	}{
		{"exit 75", "SLURM_JOB_ID=7", "scontrol requeue 7", 75},
		{"exit 75", "SLURM_JOB_ID=9 SLURM_ARRAY_JOB_ID=7 SLURM_ARRAY_TASK_ID=3", "scontrol requeue 7_3", 75},
		{"exit 75", "SLURM_JOB_ID=7 SLURM_RESTART_COUNT=100", "", 75},
		{"exit 75", "", "", 75},
		{"exit 1", "SLURM_JOB_ID=7", "", 1},
		{"exit 143", "SLURM_JOB_ID=7", "", 143},
		{"kill -9 $$", "SLURM_JOB_ID=7", "scontrol requeue 7", 137},
		{"kill -9 $$", "SLURM_JOB_ID=7 SLURM_RESTART_COUNT=5", "", 137},
		{"kill -SEGV $$", "SLURM_JOB_ID=7", "scontrol requeue 7", 139},
	} {
		w := newCluster(t, nil)
		w.write("program", []byte("trap 'sleep 0.1; "+c.ends+"' TERM\necho > ready\n"+
			"while :; do sleep 0.05; done\n"))
		job := (&slurm{}).job("name", "what", "bash program", "log")
		_, text, _ := strings.Cut(job.script, "|| exit 3\n")
		w.write("job.sh", []byte(text))
		cmd := w.prepare("bash", "job.sh")
		cmd.Env = append(cmd.Env, strings.Fields(c.env)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for began := time.Now(); time.Since(began) < 20*time.Second; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(w.path("ready")); err == nil {
				break
			}
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != c.code {
			t.Errorf("%+v: exit code %d", c, code)
		}
		if calls := strings.Join(w.calls(), "\n"); calls != c.want {
			t.Errorf("%+v: calls %q", c, calls)
		}
	}
}

func TestTimeLimit(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90": 90 * time.Minute, "10:30": 10*time.Minute + 30*time.Second, "2:00:00": 2 * time.Hour,
		"1-12": 36 * time.Hour, "1-0:30": 24*time.Hour + 30*time.Minute, "0-0:0:20": 20 * time.Second,
	} {
		for _, options := range [][]string{{"-t", text}, {"-t" + text}, {"--time", text},
			{"-p", "x", "--time=" + text}} {
			if d, ok := (&slurm{options: options}).timeLimit(); !ok || d != want {
				t.Errorf("%q: %v, %v, want %v", options, d, ok, want)
			}
		}
	}
	for _, options := range [][]string{nil, {"-t"}, {"-t", "INFINITE"}, {"--time-min=3"}, {"-t", "0"}} {
		if d, ok := (&slurm{options: options}).timeLimit(); ok {
			t.Errorf("%q: %v", options, d)
		}
	}
}

// Jobs make the folder that one machine makes, to the byte, and leave nothing to submit.
func TestSubmittedJobs(t *testing.T) {
	w := newCluster(t, map[string]string{"x.yaml": twoWaves})
	w.env = append(w.env, "EXECUTE=yes")
	e := w.run(0, "submit", "x.yaml", "--slurm", "--devices", "3", "--set", "seed=4")
	if !strings.Contains(e.stdout, "wave 2, 6 shares: job 103\n") {
		t.Errorf("it prints %s", e.stdout)
	}
	if b, err := os.ReadFile(w.path("../calls.failed")); err == nil {
		t.Fatalf("%s%s", b, w.read("../calls.out"))
	}
	w.run(0, "run", "x.yaml", "--quiet", "--set", "seed=4", "--store", "another", "--out", "whole")
	same(t, w.path("whole"), w.path(".runexp/out/waves/seed=4"))
	e = w.run(0, "submit", "x.yaml", "--slurm", "--set", "seed=4")
	if !strings.Contains(e.stdout, "all cached") {
		t.Errorf("it prints %s", e.stdout)
	}
}

// TestSubmitMany submits 100,000 cells of 50,000 photographs, before and after the store has seen them, in at
// most 60 s and 2 GB.
// Links to one file make as many photographs as any. The time is that of processors, since other tests run.
func TestSubmitMany(t *testing.T) {
	const (
		most   = 60 * time.Second
		memory = 2000.0 // MiB
	)
	photos := slices.Max(append(stagetest.Sample(t, 2, []int{50_000}), 5_000))
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	w := newCluster(t, map[string]string{"x.yaml": fmt.Sprintf(`name: many
axes:
  a: [%s]
  b: [%s]
stages:
  images: {uses: dataset/folder, with: {path: photos}}
  noisy:  {uses: perturb/noise, matrix: [a, b], in: {images: images}, with: {draw: "${a}", scale: "${b}"}}
publish: [noisy]
`, strings.Join(ids, ", "), strings.Join(ids[1:101], ", "))})
	w.picture("photos/00000.bmp", 1)
	for i := range photos {
		name := w.path(fmt.Sprintf("photos/%05d.bmp", i))
		if err := os.Link(w.path("photos/00000.bmp"), name); err != nil && i > 0 {
			t.Fatal(err)
		}
	}
	for _, state := range []string{"cold", "warm"} {
		began := time.Now()
		e, mib := w.peak("submit", "x.yaml", "--slurm", "--devices", "8")
		took := time.Duration(e.usage.Utime.Nano() + e.usage.Stime.Nano())
		t.Logf("%s: %v, %v of processors, %.0f MiB", state, time.Since(began), took, mib)
		if took > most || mib > memory {
			t.Errorf("%s: %v and %.0f MiB, want at most %v and %.0f MiB", state, took, mib, most, memory)
		}
		if calls := w.calls(); len(calls) != 4 || !strings.Contains(e.stdout, "wave 1, 8 shares") {
			t.Errorf("%d calls of Slurm: %q\n%s", len(calls), calls, e.stdout)
		}
	}
}

// Every way in which sbatch takes an option that is submit's own is refused, and no way to write another one.
func TestReservedOptions(t *testing.T) {
	refused := func(options ...string) bool { return (&slurm{options: options}).check() != nil }
	for _, name := range reserved {
		long := strings.HasPrefix(name, "--")
		forms := []string{name, name + "x", "-H" + name[1:], "-vk" + name[1:] + "3"}
		if long {
			forms = nil
			for n := len(name); n > 5 && n > len(name)/2; n-- { // from where sbatch knows which one it is
				forms = append(forms, name[:n], name[:n]+"=x")
			}
		}
		for _, form := range forms {
			if !refused("-p", "gpu", form) {
				t.Errorf("%s, which is %s, is taken", form, name)
			}
		}
	}
	for _, form := range []string{"-p", "-pgpu", "--partition=gpu", "--part=gpu", "--time=4", "-t4",
		"--nodes=1",
		"--wait-all-nodes=1", "--nodelist=a", "--wckey=x", "--error=a", "--gres=gpu:1", "-Aname", "-c4",
		"-xa",
		"--comment=--array", "--hold", "--verbose", "--mail-user=a", "--open"} {
		if refused(form) != (form == "--open") {
			t.Errorf("%s is judged wrong", form)
		}
	}
	if n := (&slurm{options: []string{"--cpus-per-t", "4"}}).slots(); n != 4 {
		t.Errorf("%d processors", n)
	}
	if d, _ := (&slurm{options: []string{"--tim=4"}}).timeLimit(); d != 4*time.Minute {
		t.Errorf("a time limit of %v", d)
	}
}
