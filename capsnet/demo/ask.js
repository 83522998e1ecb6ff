// Questions to the server, one at a time: of those that come meanwhile only the newest goes out next. `place` is busy
// until the last one is settled. An answer counts unless a later question's came before it, even after its patience ran out.
// The newest question, once it is lost for good, is asked again and again while `wanted` says so.
const HOLD = 1000, PATIENCE = 5000; // ms until the next may go out all the same; until `failed` says that none came
const SLOW = 1500; // ms until `slow` says that it takes long
const REST = 3000; // ms until a lost question is asked again

function asker(place, ask, { answered, failed, slow = () => {}, patience = () => PATIENCE, wanted = () => false }) {
  let waiting = null, held = false, asked = 0, shown = 0;

  async function put(question) {
    const number = ++asked;
    const fail = () => {
      if (number < asked || waiting) return; // a later one will tell
      shown = number - 1;
      place.ariaBusy = "false";
      failed(question);
    };
    const long = setTimeout(slow, SLOW, question), late = setTimeout(fail, patience(question));
    const answer = await ask(question).catch(() => undefined); // Gradio itself answers undefined when the server is gone
    for (const timer of [long, late]) clearTimeout(timer);
    if (answer === undefined) {
      fail();
      setTimeout(() => number === asked && !waiting && wanted(question) && send(question), REST);
      return;
    }
    if (number <= shown) return;
    shown = number;
    place.ariaBusy = String(number < asked || Boolean(waiting));
    answered(answer, question);
  }

  async function send(question) {
    waiting = question;
    place.ariaBusy = "true";
    if (held) return;
    held = true;
    while (waiting) {
      const next = waiting;
      waiting = null;
      await Promise.race([put(next), new Promise((done) => setTimeout(done, HOLD))]);
    }
    held = false;
  }

  return send;
}
