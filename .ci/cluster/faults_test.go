package cluster

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A fault is what happens on a cluster. It returns what it hit, nothing where it found nothing to hit.
type fault struct {
	name    string
	provoke func(r *round, x *rand.Rand) string
}

// faults are all of them.
var faults = []fault{
	{"node lost", (*round).loseNode},
	{"SIGTERM before the time limit", (*round).expire},
	{"scancel --signal=TERM --batch", (*round).drain},
	{"SIGKILL of a share", (*round).killShare},
	{"task cancelled", (*round).cancelTask},
	{"requeue", (*round).requeue},
	{"preempted", (*round).preempt},
	{"share twice at once", (*round).twice},
	{"controller restarts", (*round).restartController},
	{"submit again", (*round).again},
	{"quota", (*round).quota},
}

// pick returns one of the running tasks.
func (r *round) pick(x *rand.Rand) (j job, ok bool) {
	list := r.tasks()
	if len(list) == 0 {
		return j, false
	}
	return list[x.IntN(len(list))], true
}

// loseNode ends all that runs on a node, at once, and starts it again some time later.
func (r *round) loseNode(x *rand.Rand) string {
	j, ok := r.pick(x)
	if !ok {
		return ""
	}
	n, err := strconv.Atoi(strings.TrimPrefix(j.node, "n"))
	if err != nil {
		r.Fatalf("a node is called %q", j.node)
	}
	kill(r.nodes[n])
	time.Sleep(time.Duration(x.IntN(8)) * time.Second)
	r.startNode(n)
	return j.node
}

// expire moves the end of a task's time limit to some seconds from now, as Slurm counts limits in minutes.
func (r *round) expire(x *rand.Rand) string {
	j, ok := r.pick(x)
	if ok {
		end := time.Now().Add(4 * time.Second).Format("2006-01-02T15:04:05")
		r.ask("scontrol", "update", "JobId="+j.id, "EndTime="+end)
	}
	return j.id
}

func (r *round) drain(x *rand.Rand) string {
	j, ok := r.pick(x)
	if ok {
		r.ask("scancel", "--signal=TERM", "--batch", j.id)
	}
	return j.id
}

// killShare kills a program of a share, and leaves the job's script.
func (r *round) killShare(x *rand.Rand) string {
	var found []int
	lists, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, list := range lists {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(list)))
		args, _ := os.ReadFile(list)
		if bytes.HasPrefix(args, []byte(program+"\x00run\x00")) && bytes.Contains(args, []byte("--share")) {
			found = append(found, pid)
		}
	}
	if len(found) == 0 {
		return ""
	}
	pid := found[x.IntN(len(found))]
	p, err := os.FindProcess(pid)
	if err != nil || p.Kill() != nil {
		return ""
	}
	return fmt.Sprint("process ", pid)
}

// cancelTask cancels one task for good, as a user or an administrator may.
func (r *round) cancelTask(x *rand.Rand) string {
	j, ok := r.pick(x)
	if ok {
		r.ask("scancel", j.id)
	}
	return j.id
}

func (r *round) requeue(x *rand.Rand) string {
	j, ok := r.pick(x)
	if ok {
		r.ask("scontrol", "requeue", j.id)
	}
	return j.id
}

// preempt has a job of a partition of higher priority take a node with all its GPUs.
func (r *round) preempt(x *rand.Rand) string {
	j, ok := r.pick(x)
	if !ok || r.ask("sbatch", "-p", "urgent", "-w", j.node, fmt.Sprintf("--gres=gpu:%d", gpus),
		"-o", "/dev/null", "--wrap", "sleep 2") == "" {
		return ""
	}
	return j.node
}

// twice executes a share that a task executes at the same time.
func (r *round) twice(x *rand.Rand) string {
	j, ok := r.pick(x)
	if !ok {
		return ""
	}
	share := fmt.Sprintf("%d/%d", j.task, r.shares)
	cmd := r.command("run", "--share", share)
	out, err := cmd.CombinedOutput()
	return fmt.Sprintf("%s: %v, %s", share, err, lastLine(out))
}

// restartController kills the controller and starts it again some time later.
func (r *round) restartController(x *rand.Rand) string {
	kill(r.controller)
	time.Sleep(time.Duration(x.IntN(5)) * time.Second)
	r.startController()
	r.until("the controller answers", r.answers)
	return "controller"
}

// again submits while the jobs of an earlier submission are queued.
func (r *round) again(*rand.Rand) string { return r.submit() }

// quota has the file system full for some time.
func (r *round) quota(x *rand.Rand) string {
	if len(r.tasks()) == 0 {
		return ""
	}
	used := r.used()
	for exec.Command("mount", "-o", fmt.Sprintf("remount,size=%dk", used), r.dir).Run() != nil {
		used = r.used() + 64 // more was written meanwhile
	}
	time.Sleep(time.Duration(1+x.IntN(5)) * time.Second)
	r.sh("mount", "-o", "remount,size=2g", r.dir)
	return fmt.Sprintf("at %d MB", used>>10)
}

// used returns how many KiB the round's file system has.
func (r *round) used() int {
	fields := strings.Fields(r.sh("df", "--output=used", r.dir))
	used, err := strconv.Atoi(fields[len(fields)-1])
	if err != nil {
		r.Fatal(err)
	}
	return used
}
