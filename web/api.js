// Asking the server. Errors are Error objects whose message is the server's own line.
let key = "";
export function setKey(value) {
  key = value;
}

function head() {
  return { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) };
}

async function checked(reply) {
  if (reply.ok) return reply;
  let message = `HTTP ${reply.status}`;
  try {
    message = (await reply.json()).error.message;
  } catch {
    /* Not JSON: the status says it. */
  }
  throw Object.assign(new Error(message), { status: reply.status });
}

export async function get(path) {
  return (await checked(await fetch(path, { headers: head() }))).json();
}

export async function post(path, body, signal) {
  const init = { method: "POST", headers: head(), body: JSON.stringify(body), signal };
  return (await checked(await fetch(path, init))).json();
}

// Sends a JSON text; calls onEvent for each event of the answer until [DONE]. Returns the seed.
export async function stream(path, body, signal, onEvent) {
  const init = { method: "POST", headers: head(), body, signal };
  const reply = await checked(await fetch(path, init));
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const data = part.replace(/^data: /, "");
      if (data === "[DONE]") continue;
      const event = JSON.parse(data);
      if (event.error) throw new Error(event.error.message);
      onEvent(event);
    }
  }
  return reply.headers.get("X-Kvasir-Seed");
}
