// The decoder, in the browser: it draws a slider's tick without asking the server. Its weights come once a network.
const decoders = {};

// Resolves to (digit, pose) → the picture, a byte a pixel, ink 255. Where the weights do not come, the next call asks again.
function decoderOf(network, { sizes, version }) {
  decoders[network] ??= fetch(`gradio_api/decoders/${encodeURIComponent(network)}?${version}`)
    .then((answer) => (answer.ok ? answer.arrayBuffer() : Promise.reject(answer.status)))
    .then((weights) => unpack(weights, sizes))
    .catch((error) => {
      delete decoders[network];
      throw error;
    });
  return decoders[network];
}

function unpack(weights, sizes) {
  const numbers = fromHalves(new Uint16Array(weights));
  let read = 0;
  const take = (count) => numbers.subarray(read, (read += count));
  const layers = sizes.map(([inputs, outputs]) => ({ inputs, matrix: take(inputs * outputs), bias: take(outputs) }));
  return (digit, pose) => {
    // All other capsules are zero: of the first layer only the digit's columns count.
    const last = layers.length - 1;
    let values = pose, first = digit * pose.length;
    layers.forEach(({ inputs, matrix, bias }, number) => {
      values = bias.map((sum, output) => {
        for (let i = 0, at = output * inputs + first; i < values.length; i++) sum += matrix[at + i] * values[i];
        return number < last ? Math.max(0, sum) : 255 / (1 + Math.exp(-sum));
      });
      first = 0;
    });
    return Uint8Array.from(values, Math.round);
  };
}

// Numbers of two bytes: sign, five bits of exponent, ten of fraction. As float32 they differ in the exponent's offset.
function fromHalves(halves) {
  const bits = new Uint32Array(halves.length), floats = new Float32Array(bits.buffer);
  halves.forEach((half, i) => (bits[i] = ((half & 0x8000) << 16) | ((half & 0x7fff) << 13)));
  return floats.map((value) => value * 2 ** 112); // not for infinities, which no weight is
}
