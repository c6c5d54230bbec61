package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/runexp/runexp/pipeline"
)

// slurm is a cluster's scheduler, with the common settings of an experiment's jobs.
type slurm struct {
	options []string // of sbatch, given by the user
	name    string   // prefix of the jobs' names
	logs    string   // the folder of the jobs' output
}

// A slurmJob is submitted by one sbatch: the shares of a wave, or the job that closes it.
type slurmJob struct {
	name, what string
	closes     bool
	args       []string // of sbatch, without the dependency
	script     string
	id         string // once it is queued
}

// closing ends the names of jobs that close a wave.
const closing = "-close"

// reserved are the options of sbatch that the user can't set.
var reserved = []string{"-a", "--array", "-d", "--dependency", "-J", "--job-name", "--parsable", "--wrap",
	"-o", "--output", "--open-mode", "--signal", "-W", "--wait", "--no-requeue", "-h", "--help",
	"--usage", "-V",
	"--version", "--test-only"}

// flagLetters are the short options of sbatch without a value: after one, others may follow in one argument.
const flagLetters = "hHIkOQsuvVW"

// check returns an error for a reserved option.
func (c *slurm) check() error {
	for _, name := range reserved {
		arg, _, given := c.find(name)
		switch short, _, _ := strings.Cut(arg, "="); {
		case given && short != name && strings.HasPrefix(name, "--"):
			return misuse("%s of sbatch can't be given: it is %s, which submit chooses itself", arg, name)
		case given:
			return misuse("%s of sbatch can't be given: submit chooses it itself", name)
		}
	}
	return nil
}

// option returns the value of an option of sbatch, the last if there are several; short ones have one letter.
func (c *slurm) option(names ...string) (value string, given bool) {
	_, value, given = c.find(names...)
	return value, given
}

// find returns the argument that gives an option, and its value. Like sbatch, it accepts the beginning of a
// long name, and letters of options without a value before a short one.
func (c *slurm) find(names ...string) (arg, value string, given bool) {
	for i, at := range c.options {
		for _, name := range names {
			rest, found := matches(at, name)
			if !found {
				continue
			}
			if rest == "" && i+1 < len(c.options) {
				rest = c.options[i+1]
			}
			arg, value, given = at, strings.TrimPrefix(rest, "="), true
		}
	}
	return arg, value, given
}

// matches reports whether an argument gives an option, and returns what follows its name.
func matches(arg, name string) (rest string, found bool) {
	if strings.HasPrefix(name, "--") {
		given, _, _ := strings.Cut(arg, "=")
		return arg[len(given):], len(given) > 2 && strings.HasPrefix(name, given)
	}
	if strings.HasPrefix(arg, "--") || !strings.HasPrefix(arg, "-") {
		return "", false
	}
	for i, letter := range arg[1:] {
		if byte(letter) == name[1] {
			return arg[i+2:], true
		}
		if !strings.ContainsRune(flagLetters, letter) {
			break
		}
	}
	return "", false
}

// gpus reports whether the user asks for GPUs.
func (c *slurm) gpus() bool {
	gres, _ := c.option("--gres")
	_, given := c.option("-G", "--gpus", "--gpus-per-node", "--gpus-per-task")
	return given || strings.Contains(gres, "gpu")
}

// slots returns how many items a job computes at once, by its options: on processors one a core.
func (c *slurm) slots() int {
	if cores, _ := c.option("-c", "--cpus-per-task"); !c.gpus() {
		if n, err := strconv.Atoi(cores); err == nil && n > 0 {
			return n
		}
	}
	return 1
}

var limits = regexp.MustCompile(`^(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?$`)

// timeLimit returns the time limit of a job: minutes, minutes:seconds, hours:minutes:seconds, days-hours,
// days-hours:minutes or days-hours:minutes:seconds.
func (c *slurm) timeLimit() (d time.Duration, ok bool) {
	text, _ := c.option("-t", "--time")
	m := limits.FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	units := []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second}
	if m[1] == "" && m[4] == "" { // no days, and not three numbers
		units = []time.Duration{0, time.Minute, time.Second, 0}
	}
	for i, unit := range units {
		n, _ := strconv.Atoi(m[i+1]) // 0 for a missing number
		d += time.Duration(n) * unit
	}
	return d, d > 0
}

// warning is how many seconds before the time limit a job gets the signal to store its results and to be
// queued again.
func (c *slurm) warning() int {
	const usual = 2 * time.Minute
	if limit, ok := c.timeLimit(); ok {
		return int(min(usual, limit/4).Seconds())
	}
	return int(usual.Seconds())
}

// jobs returns the jobs of all incomplete waves, in order.
func (c *slurm) jobs(o *pipeline.Outlook, run []string, shares func(*pipeline.Wave) int, most int) (
	jobs []*slurmJob,
) {
	if c.gpus() {
		run = append(run[:len(run):len(run)], "--devices", "cuda")
	}
	waves := o.Waves()
	for i := range waves {
		w := &waves[i]
		if w.Complete() {
			continue
		}
		name := fmt.Sprintf("%s-%d", c.name, w.Number+1)
		if len(w.Cells) > 0 {
			n := shares(w)
			array := fmt.Sprintf("--array=0-%d", n-1)
			if most > 0 {
				array += fmt.Sprintf("%%%d", most)
			}
			what := fmt.Sprintf("wave %d, %d shares", w.Number+1, n)
			if n == 1 {
				what = strings.TrimSuffix(what, "s")
			}
			share := fmt.Sprintf(`--share "$SLURM_ARRAY_TASK_ID"/%d`, n)
			jobs = append(jobs, c.job(name, what, quoted(run)+" "+share, "%x-%A_%a.out", array))
		}
		what := fmt.Sprintf("close wave %d", w.Number+1)
		closer := c.job(name+closing, what, quoted(run)+" --share close", "%x-%j.out")
		closer.closes = true
		jobs = append(jobs, closer)
	}
	return jobs
}

func (c *slurm) job(name, what, command, log string, args ...string) *slurmJob {
	dir, _ := os.Getwd() // in which the place was found
	log = filepath.Join(strings.ReplaceAll(c.logs, "%", "%%"), log)
	args = append(args, "--parsable", "--job-name="+name, "--requeue", "--open-mode=append", "--output="+log,
		fmt.Sprintf("--signal=B:TERM@%d", c.warning()))
	var script strings.Builder
	_ = jobTemplate().Execute(&script, struct {
		What, Dir, Command string
		Env                []string
	}{what, quote(dir), command, environ()})
	return &slurmJob{name: name, what: what, args: append(args, c.options...), script: script.String()}
}

//go:embed job.sh.tmpl
var jobText string

var jobTemplate = parsed("job", jobText, nil)

// environ returns, quoted, the variables that jobs need even if sbatch passes none on.
func environ() (list []string) {
	for _, name := range []string{"ONNXRUNTIME_LIB", "RUNEXP_MODEL_TIME", "RUNEXP_MODEL_MEMORY",
		"XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE"} {
		value := os.Getenv(name)
		if value == "" {
			continue
		}
		if _, err := os.Stat(value); err == nil {
			if abs, err := filepath.Abs(value); err == nil {
				value = abs
			}
		}
		list = append(list, name+"="+quote(value))
	}
	return list
}

// print writes a shell script that submits jobs.
func (c *slurm) print(w io.Writer, jobs []*slurmJob) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "#!/bin/bash\n# Submits what is missing. The jobs' scripts stand between the marks.\n"+
		"set -eu\nmkdir -p %s\nsubmit() { id=$(sbatch \"$@\"); id=${id%%%%;*}; echo \"$id\"; }\n",
		quote(c.logs))
	for i, j := range jobs {
		mark := "RUNEXP"
		for strings.Contains(j.script, "\n"+mark+"\n") {
			mark += "_"
		}
		last := ""
		if i > 0 {
			last = "$id"
		}
		var after string
		for _, option := range j.dependency(last) {
			after = ` "` + option + `"`
		}
		fmt.Fprintf(&b, "\n# %s\nsubmit%s %s <<'%s'\n%s%s\n", j.what, after, quoted(j.args), mark, j.script,
			mark)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// submit submits the jobs that aren't queued, each to begin when the previous one has ended, and writes a
// line for each. A wave whose closing job is queued is being executed.
func (c *slurm) submit(ctx context.Context, u *ui, jobs []*slurmJob) error {
	queued, err := c.queued(ctx, jobs)
	if err != nil {
		const text = "%w: whether jobs are queued already isn't known"
		const hint = "nothing was submitted, so that nothing is computed twice; try again when squeue answers"
		return &exitError{exitEnvironment, fmt.Errorf(text, err), hint}
	}
	last, made := "", 0
	for i, j := range jobs {
		if err := stoppedBy(ctx); err != nil {
			return err
		}
		j.id = queued[j.name]
		if !j.closes && queued[j.name+closing] != "" {
			j.id = queued[j.name+closing]
		}
		if j.id != "" {
			fmt.Fprintf(u.out, "%s: queued already, job %s\n", j.what, j.id)
			last = j.id
			continue
		}
		out, err := call(ctx, j.script, "sbatch", append(j.dependency(last), j.args...)...)
		if err != nil {
			const text = "%w; %d of %d jobs are queued"
			const hint = "the same command submits the rest; scancel --name=%s… takes back what is queued"
			return &exitError{exitEnvironment, fmt.Errorf(text, err, i, len(jobs)), fmt.Sprintf(hint, c.name)}
		}
		j.id, _, _ = strings.Cut(strings.TrimSpace(out), ";")
		fmt.Fprintf(u.out, "%s: job %s\n", j.what, j.id)
		last = j.id
		made++
	}
	if made == 0 {
		u.say("everything that is missing is queued: nothing was submitted")
	}
	return nil
}

// dependency returns the options that make a job wait: for the previous job, and a job that closes a wave
// also for others of its name, so that no two of them run at once.
func (j *slurmJob) dependency(last string) []string {
	var all []string
	if last != "" {
		all = append(all, "afterany:"+last)
	}
	if j.closes {
		all = append(all, "singleton")
	}
	if len(all) == 0 {
		return nil
	}
	return []string{"--dependency=" + strings.Join(all, ",")}
}

// queued returns the ids of the jobs that are queued or running, by their names.
func (c *slurm) queued(ctx context.Context, jobs []*slurmJob) (map[string]string, error) {
	var names []string
	for _, j := range jobs {
		names = append(names, j.name)
	}
	out, err := call(ctx, "", "squeue", "--noheader", "--name="+strings.Join(names, ","), "--format=%F %j")
	ids := map[string]string{}
	for line := range strings.Lines(out) {
		if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			ids[name] = id
		}
	}
	return ids, err
}

// call runs one of Slurm's commands. Its error includes the command's output.
func call(ctx context.Context, input, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		line, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
		if line != "" && errors.As(err, new(*exec.ExitError)) {
			return "", fmt.Errorf("%s: %s", name, strings.TrimPrefix(line, name+": "))
		}
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return string(out), nil
}

// largestArray returns how many tasks an array may have.
func (c *slurm) largestArray(ctx context.Context) int {
	config, err := call(ctx, "", "scontrol", "show", "config")
	m := regexp.MustCompile(`(?m)^MaxArraySize\s*=\s*(\d+)`).FindStringSubmatch(config)
	if err != nil || m == nil {
		return defaultArray
	}
	if n, err := strconv.Atoi(m[1]); err == nil && n > 0 {
		return n
	}
	return defaultArray
}
