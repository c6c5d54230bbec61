package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const tag = "py3-none-manylinux_2_28_x86_64"

// oldestRuntime is the oldest release of ONNX Runtime that the command accepts.
const oldestRuntime = "1.26.0"

// oldestPlugin is the oldest release of WebGPU's plugin that was tried.
const oldestPlugin = "0.4.0"

// oldestOpenVINO is the oldest release of OpenVINO's plugin that was tried.
const oldestOpenVINO = "1.8.1"

// metadata describes the wheel. Neither package of ONNX Runtime is required: both fill the same folder, so
// who has one must not get the other too. WebGPU's plugin fits either, and comes with the one for processors.
const metadata = `Metadata-Version: 2.1
Name: %s
Version: %s
Summary: Which attribution method explains an ONNX image classifier most faithfully?
License: Apache-2.0
Requires-Python: >=3.9
Classifier: Operating System :: POSIX :: Linux
Provides-Extra: cpu
Requires-Dist: onnxruntime>=%[3]s; extra == "cpu"
Provides-Extra: cuda
Requires-Dist: onnxruntime-gpu[cuda,cudnn]>=%[3]s; extra == "cuda"
Provides-Extra: webgpu
Requires-Dist: onnxruntime>=%[3]s; extra == "webgpu"
Requires-Dist: onnxruntime-ep-webgpu>=%[4]s; extra == "webgpu"
Provides-Extra: openvino
Requires-Dist: onnxruntime>=%[3]s; extra == "openvino"
Requires-Dist: onnxruntime-ep-openvino>=%[5]s; extra == "openvino"
Provides-Extra: notebook
Requires-Dist: numpy; extra == "notebook"
Requires-Dist: pandas; extra == "notebook"
Description-Content-Type: text/markdown

The command runexp evaluates attribution (saliency) methods: it takes an experiment file and an ONNX image classifier,
and reports which method explains the model most faithfully. One of the extras cpu, webgpu (GPUs of any make) and cuda
installs ONNX Runtime; openvino adds bfloat16 on processors that have it, and notebook what the module needs for tables
and arrays.

    runexp new quickstart try
    runexp run try/quickstart.yaml
`

// writeWheel writes the wheel and returns its path.
func writeWheel(binary, version, out string) (string, error) {
	command, err := read(binary, name+"-"+version+".data/scripts/runexp", true)
	if err != nil {
		return "", err
	}
	info := name + "-" + version + ".dist-info/"
	text := fmt.Sprintf(metadata, strings.ReplaceAll(name, "_", "-"), version, oldestRuntime,
		oldestPlugin, oldestOpenVINO)
	files := []file{command,
		{info + "METADATA", []byte(text), false},
		{info + "WHEEL", []byte("Wheel-Version: 1.0\nGenerator: runexp\nRoot-Is-Purelib: false\nTag: " + tag +
			"\n"), false},
	}
	modules, err := filepath.Glob("python/" + name + "/*.py")
	if err != nil {
		return "", err
	}
	for _, m := range modules {
		f, err := read(m, name+"/"+filepath.Base(m), false)
		if err != nil {
			return "", err
		}
		files = append(files, f)
	}
	legal, err := legalFiles(info + "licenses/")
	if err != nil {
		return "", err
	}
	files = append(files, legal...)

	var record bytes.Buffer
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		digest := base64.RawURLEncoding.EncodeToString(sum[:])
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", f.path, digest, len(f.data))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	files = append(files, file{info + "RECORD", record.Bytes(), false})

	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.path, Method: zip.Deflate, Modified: modified}
		h.SetMode(0o644)
		if f.executable {
			h.SetMode(0o755)
		}
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write(f.data)
		}
		if err != nil {
			return "", err
		}
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	path := filepath.Join(out, name+"-"+version+"-"+tag+".whl")
	return path, os.WriteFile(path, b.Bytes(), 0o666)
}

// legalFiles returns the licence and the notices, below a folder of the package.
func legalFiles(dir string) ([]file, error) {
	licence, err := read("LICENSE", dir+"LICENSE", false)
	if err != nil {
		return nil, err
	}
	text, err := thirdParty(os.Getenv("ZIG_FOLDER"))
	return []file{licence, {dir + "THIRD_PARTY.txt", text, false}}, err
}
