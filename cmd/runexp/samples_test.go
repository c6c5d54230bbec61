package main

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every net of the sample experiments has its public source and its digest on record.
func TestSamplesAreDocumented(t *testing.T) {
	text := func(name string) string {
		b, err := os.ReadFile(filepath.Join("../../experiments", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	sums, page := text("samples/SHA256SUMS"), text("samples/README.md")
	nets, fetched := 0, 0
	for _, name := range []string{"cifar10-sample.yaml", "imagenet-sample.yaml",
		"architectures-sample.yaml"} {
		experiment := text(name)
		for _, m := range regexp.MustCompile(`file: ([\w.]+),`).FindAllStringSubmatch(experiment, -1) {
			nets++
			sum := regexp.MustCompile(`(?m)^([0-9a-f]{64})  models/` + regexp.QuoteMeta(m[1]) +
				`\.onnx$`).FindStringSubmatch(sums)
			if sum == nil {
				t.Errorf("%s: SHA256SUMS lacks %s", name, m[1])
				continue
			}
			if !regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(m[1]) +
				` \| \S+/\S+ @ [0-9a-f]{12}: \S`).MatchString(page) {
				t.Errorf("%s: README.md doesn't say where %s is from", name, m[1])
			}
			if b, err := os.ReadFile("../../../shared/data/models/" + m[1] + ".onnx"); err == nil {
				if d := sha256.Sum256(b); hex.EncodeToString(d[:]) != sum[1] {
					t.Errorf("%s has another digest", m[1])
				}
			}
		}
		for _, m := range regexp.MustCompile(`path: https://\S+/(\w+)\.onnx\S*#sha256=(\w+)\n`).
			FindAllStringSubmatch(experiment, -1) {
			fetched++
			line := regexp.MustCompile(m[2] + `  models/cifar10_vnncomp_(vit_)?` + m[1] + `\.onnx`)
			if !line.MatchString(sums) {
				t.Errorf("%s: %s has another digest than in SHA256SUMS", name, m[1])
			}
		}
		for _, path := range regexp.MustCompile(`path: (\S+)\}`).FindAllStringSubmatch(experiment, -1) {
			if !strings.HasPrefix(path[1], `"$`) && path[1] != "samples" {
				t.Errorf("%s reads %s, which others don't have", name, path[1])
			}
		}
		if !strings.Contains(experiment, "samples/README.md") ||
			!strings.Contains(experiment, "experiments/samples/get") {
			t.Errorf("%s doesn't say where its nets and photographs are from", name)
		}
	}
	if nets != 11 || fetched != 2 {
		t.Errorf("%d nets, %d by address", nets, fetched)
	}
}

// The command that fetches them, with a repository on this machine in place of the public ones.
func TestGetSamples(t *testing.T) {
	for _, tool := range []string{"git", "gzip", "sh"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	run := func(in string, ok bool, name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = in
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1",
			"GIT_CONFIG_GLOBAL="+filepath.Join(dir, "settings"),
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		out, err := cmd.CombinedOutput()
		if (err == nil) != ok {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for repository, at := range map[string][2]string{
		"stanleybak/vnncomp2021": {"90419aadcf06",
			"benchmarks/cifar10_resnet/onnx/resnet_2b.onnx"},
		"ChristopherBrix/vnncomp2023_benchmarks": {"d9e7b2feeaf5", "benchmarks/vit/onnx/pgd_2_3_16.onnx"},
	} {
		in := filepath.Join(dir, "public", repository)
		write("public/"+repository+"/"+at[1], "a net")
		run(in, true, "git", "init", "-q")
		if strings.Contains(at[1], "vit") {
			run(in, true, "gzip", at[1])
		}
		run(in, true, "git", "add", ".")
		run(in, true, "git", "commit", "-q", "-m", "x")
		run(in, true, "git", "tag", at[0])
	}
	write("settings",
		"[url \"file://"+filepath.Join(dir, "public")+"/\"]\n\tinsteadOf = https://github.com/\n")
	script, err := os.ReadFile("../../experiments/samples/get")
	if err != nil {
		t.Fatal(err)
	}
	write("samples/get", string(script))
	digest := sha256.Sum256([]byte("a net"))
	right := hex.EncodeToString(digest[:])
	const resnet, vit = "models/cifar10_vnncomp_resnet_2b.onnx", "models/cifar10_vnncomp_vit_pgd_2_3_16.onnx"
	write("samples/SHA256SUMS", right+"  "+resnet+"\n"+right+"  "+vit+"\n"+right+"  models/other.onnx\n")
	in := filepath.Join(dir, "samples")
	for range 2 { // the second time finds them there
		out := run(in, true, "sh", "get")
		for _, want := range []string{resnet + ": in place", vit + ": in place",
			"models/other.onnx: missing, see README.md"} {
			if !strings.Contains(out, want) {
				t.Errorf("it doesn't print %q:\n%s", want, out)
			}
		}
	}
	write("samples/"+vit, "another net")
	if out := run(in, false, "sh", "get"); !strings.Contains(out, vit+": differs from the file") {
		t.Errorf("of a file that was changed it prints\n%s", out)
	}
}
