// What the server gets of a sheet, and how long it may take: an upload is slow.
const SLOWEST = 50; // bytes/ms

const plain = ({ kind, strokes, index, data }) => ({ kind, strokes, index, data });
const patienceFor = ({ data }) => PATIENCE + (data?.length ?? 0) / SLOWEST;
