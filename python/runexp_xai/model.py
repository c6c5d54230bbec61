"""The model that a function explains, as an ONNX file for onnxruntime."""

from .errors import needed

__all__ = ["Model"]


class Model:
    """A classifier of normalised images, float32 [n,channels,height,width], of which batch fit at once, 0
    for any number. It returns a number a class, [n,classes].

    onnx: its ONNX file's bytes, as onnxruntime.InferenceSession and onnx.load_from_string take them.
    labels: the names of the classes, an empty list where they have none. returns: "logits" or
    "probabilities", what the file's output is.
    """

    def __init__(self, head, onnx):
        self.onnx = onnx
        self.channels, self.height, self.width = head["channels"], head["height"], head["width"]
        self.classes, self.labels, self.batch = head["classes"], head["labels"], head["batch"]
        self.returns = "probabilities" if head["probabilities"] else "logits"
        self._head, self._session = head, None

    def normalise(self, images):
        """Returns images [...,3,H,W] with pixels from 0 to 1 as [...,channels,H,W], as the model takes them.

        A pixel v is (v·scale − mean)/std, by the numbers for red, green and blue; of a model of grey images
        v is 0.299 red + 0.587 green + 0.114 blue.
        """
        np = needed("numpy")
        x = np.asarray(images, np.float32)
        if x.shape[-3:] != (3, self.height, self.width):
            raise ValueError(
                "images of the shape %s, and the model takes [...,3,%d,%d]"
                % (list(x.shape), self.height, self.width)
            )
        if self.channels == 1:
            red, green, blue = np.moveaxis(x, -3, 0)
            grey = np.float32(0.299) * red + np.float32(0.587) * green
            x = np.expand_dims(grey + np.float32(0.114) * blue, -3)
        mean, std = (np.array(self._head[name], np.float32)[:, None, None] for name in ("mean", "std"))
        return (x * np.float32(self._head["scale"]) - mean) / std

    @property
    def session(self):
        """The file's onnxruntime.InferenceSession, on one thread: runexp runs a process for each core."""
        if self._session is None:
            onnxruntime = needed("onnxruntime")
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = 3
            self._session = onnxruntime.InferenceSession(
                self.onnx,
                options,
                providers=["CPUExecutionProvider"],
                disabled_optimizers=self._head["disabled"],
            )
        return self._session

    def answers(self, inputs):
        """Returns the file's outputs for any number of normalised images, float32."""
        np = needed("numpy")
        x = np.ascontiguousarray(inputs, np.float32)
        size = (self.channels, self.height, self.width)
        if x.ndim != 4 or x.shape[1:] != size:
            raise ValueError(
                "inputs of the shape %s, and the model takes [n,%d,%d,%d]" % (list(x.shape), *size)
            )
        step = self.batch or 64  # more need more memory, and are no faster
        answers = [np.empty((0, self.classes), np.float32)]
        for start in range(0, len(x), step):
            part = x[start : start + step]
            rows = len(part)
            if rows < self.batch:
                part = np.concatenate([part, np.repeat(part[-1:], self.batch - rows, axis=0)])
            answers.append(self.session.run(None, {self.session.get_inputs()[0].name: part})[0][:rows])
        return np.concatenate(answers)

    def logits(self, inputs):
        """Returns the logits of normalised images, float64; of a file with probabilities their logarithms."""
        np = needed("numpy")
        z = self.answers(inputs).astype(np.float64)
        if self.returns == "logits":
            return z
        with np.errstate(divide="ignore"):
            return np.log(z)

    def probabilities(self, inputs):
        """Returns the probabilities of normalised images, float64: the softmax of logits, of each head where
        there are several, or the sigmoid where each class has a probability of its own."""
        np = needed("numpy")
        z = self.answers(inputs).astype(np.float64)
        if self.returns == "probabilities":
            return z
        if self._head["independent"]:
            small = np.exp(-np.abs(z))
            return np.where(z < 0, small, 1) / (1 + small)
        heads = z.reshape(len(z), max(1, self._head["heads"]), -1)
        p = np.exp(heads - heads.max(axis=2, keepdims=True))
        return (p / p.sum(axis=2, keepdims=True)).reshape(z.shape)
