package cluster

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	nodes = 4
	gpus  = 2 // of a node
)

// configuration is of a controller that finds lost nodes and queues jobs again within seconds instead of
// minutes. Partition urgent preempts what runs in the other one.
const configuration = `ClusterName=loopback
SlurmctldHost=controller(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=%[1]s/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation=%[1]s/state
SlurmctldPidFile=%[1]s/slurmctld.pid
SlurmctldLogFile=%[1]s/slurmctld.log
SlurmdPidFile=%[1]s/slurmd-%%n.pid
SlurmdLogFile=%[1]s/slurmd-%%n.log
SlurmdSpoolDir=%[1]s/jobs-%%n
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
MailProg=/bin/true
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=2
UnkillableStepTimeout=10
SlurmdTimeout=3
ReturnToService=2
GresTypes=gpu
NodeName=DEFAULT CPUs=%[2]d RealMemory=1000 Gres=gpu:%[2]d State=UNKNOWN
%[3]s
PartitionName=gpu Nodes=ALL Default=YES PriorityTier=1 MaxTime=60 State=UP
PartitionName=urgent Nodes=ALL PriorityTier=2 MaxTime=60 State=UP
`

// A slurm is a cluster on the loopback: a controller, and nodes that are each a namespace of processes with a
// name of its own, so that killing its first process is a loss of power. All of it ends with the test.
type slurm struct {
	testing.TB
	dir        string
	controller *exec.Cmd
	answered   time.Time        // when the controller last did, or was started
	nodes      [nodes]*exec.Cmd // nil while lost
}

// newSlurm starts a cluster, on a file system of its own.
func newSlurm(t testing.TB) *slurm {
	t.Helper()
	s := &slurm{TB: t, dir: "/mnt/slurm"}
	s.mount(s.dir)
	for _, name := range []string{"state", "devices", "bin"} {
		if err := os.MkdirAll(s.in(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var list []string
	for n := range nodes {
		list = append(list, fmt.Sprintf("NodeName=n%d NodeAddr=127.0.0.1 Port=%d", n, 17000+n))
	}
	s.write("slurm.conf", fmt.Sprintf(configuration, s.dir, gpus, strings.Join(list, "\n")), 0o644)
	for n := range gpus { // Slurm wants character devices
		s.sh("mknod", s.in(fmt.Sprint("devices/gpu", n)), "c", "1", "3")
	}
	const gres = "AutoDetect=off\nNodeName=n[0-%d] Name=gpu File=%s/devices/gpu[0-%d]\n"
	s.write("gres.conf", fmt.Sprintf(gres, nodes-1, s.dir, gpus-1), 0o644)
	t.Setenv("SLURM_CONF", s.in("slurm.conf"))
	key := make([]byte, 1024)
	rand.Read(key)
	s.write("munge.key", string(key), 0o600)
	s.start("munged", "--foreground", "--force", "--socket="+s.in("munge.socket"),
		"--key-file="+s.in("munge.key"), "--pid-file="+s.in("munge.pid"), "--log-file="+s.in("munge.log"),
		"--seed-file="+s.in("munge.seed"))
	s.until("munged answers", func() bool { _, err := os.Stat(s.in("munge.socket")); return err == nil })
	s.startController()
	for n := range nodes {
		s.startNode(n)
	}
	s.until("all nodes are idle", func() bool {
		return strings.TrimSpace(s.ask("sinfo", "-h", "-t", "idle", "-o", "%D")) == fmt.Sprint(nodes)
	})
	s.countCommands()
	return s
}

// mount makes a file system in memory, which goes with the test.
func (s *slurm) mount(dir string) {
	s.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.Fatal(err)
	}
	s.sh("mount", "-t", "tmpfs", "-o", "size=2g", "tmpfs", dir)
	s.Cleanup(func() { s.sh("umount", "--lazy", dir) })
}

func (s *slurm) in(name string) string { return filepath.Join(s.dir, name) }

func (s *slurm) write(name, text string, mode os.FileMode) {
	s.Helper()
	if err := os.WriteFile(s.in(name), []byte(text), mode); err != nil {
		s.Fatal(err)
	}
}

// start starts a daemon, which is killed when the test ends.
func (s *slurm) start(name string, args ...string) *exec.Cmd {
	s.Helper()
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { kill(cmd) })
	return cmd
}

// kill ends a process as a loss of power does. It may have ended.
func kill(cmd *exec.Cmd) {
	if cmd != nil && cmd.ProcessState == nil {
		cmd.Process.Kill()
		cmd.Wait()
	}
}

func (s *slurm) startController() {
	s.Helper()
	s.controller, s.answered = s.start("slurmctld", "-D", "-f", s.in("slurm.conf")), time.Now()
}

// startNode starts a node's daemon below a shell that waits for what jobs leave behind.
func (s *slurm) startNode(n int) {
	s.Helper()
	s.nodes[n] = s.start("unshare", "--fork", "--pid", "--kill-child", "--mount", "--propagation=slave",
		"--mount-proc", "--uts", "bash", "-c",
		`hostname "$0"; slurmd -D -N "$0" -f "$1"; exit $?`, fmt.Sprint("n", n), s.in("slurm.conf"))
}

// ask returns what a command prints, nothing while the controller is away.
func (s *slurm) ask(name string, args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, name, args...).Output()
	return string(out)
}

// sh runs a command that must succeed.
func (s *slurm) sh(name string, args ...string) string {
	s.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		s.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// until waits for something that happens within two minutes: closing waits for shares for half of one.
func (s *slurm) until(what string, holds func() bool) {
	s.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("it isn't so that %s:\n%s", what, s.state())
		}
	}
}

// state returns what a failure shows of the cluster.
func (s *slurm) state() string { return s.ask("squeue", "--array") + s.ask("sinfo", "-N", "-l") }

// countCommands makes a folder of Slurm's commands, for a PATH, that write down that they were called.
func (s *slurm) countCommands() {
	s.Helper()
	for _, name := range []string{"sbatch", "scontrol", "squeue", "sinfo", "scancel", "sacct"} {
		path, err := exec.LookPath(name)
		if err != nil {
			s.Fatal(err)
		}
		script := fmt.Sprintf("#!/bin/sh\necho %q >>%s\nexec %s \"$@\"\n", name, s.in("calls"), path)
		s.write("bin/"+name, script, 0o755)
	}
}

// calls returns how many commands of the folder were called since the last time.
func (s *slurm) calls() int {
	b, _ := os.ReadFile(s.in("calls"))
	_ = os.Remove(s.in("calls"))
	return bytes.Count(b, []byte("\n"))
}

// A job is a job of the queue, or a task of an array.
type job struct {
	id     string // 7, or 7_2
	task   int    // of the array, -1 if it is none
	state  string // RUNNING, PENDING, …
	reason string // of waiting
	node   string
}

func (j job) running() bool { return j.state == "RUNNING" }

// queue lists the jobs that have not ended.
func (s *slurm) queue() (list []job) {
	for line := range strings.Lines(s.ask("squeue", "--array", "-h", "-o", "%i|%K|%T|%r|%N")) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if len(f) != 5 {
			continue
		}
		task, err := strconv.Atoi(f[1])
		if err != nil {
			task = -1
		}
		list = append(list, job{f[0], task, f[2], f[3], f[4]})
	}
	return list
}

// tasks lists the tasks of arrays that run.
func (s *slurm) tasks() (list []job) {
	for _, j := range s.queue() {
		if j.running() && j.task >= 0 {
			list = append(list, j)
		}
	}
	return list
}

// answers reports whether the controller does. One that was silent for long is started again, as systemd and
// administrators do.
func (s *slurm) answers() bool {
	s.Helper()
	if strings.Contains(s.ask("scontrol", "ping"), " UP") {
		s.answered = time.Now()
		return true
	}
	if time.Since(s.answered) > 20*time.Second {
		s.Log("the controller is silent: it is killed and starts again")
		kill(s.controller)
		s.startController()
	}
	return false
}

// tend does what an administrator does after a controller was killed before it had written its state: it
// starts a task that is running once more, and that fails, so that it drains the node and holds the task.
func (s *slurm) tend() {
	drained := s.ask("sinfo", "-h", "-N", "-p", "gpu", "-t", "drained", "-o", "%N")
	for _, node := range strings.Fields(drained) {
		s.ask("scontrol", "update", "NodeName="+node, "State=RESUME")
	}
	for _, j := range s.queue() {
		if strings.Contains(j.reason, "held") {
			s.ask("scontrol", "release", j.id)
		}
	}
}

// drained waits until no job is left.
func (s *slurm) drained(limit time.Duration) {
	s.Helper()
	for end := time.Now().Add(limit); len(s.queue()) > 0 || !s.answers(); time.Sleep(time.Second / 5) {
		s.tend()
		if time.Now().After(end) {
			s.Fatalf("jobs don't end:\n%s", s.state())
		}
	}
}
