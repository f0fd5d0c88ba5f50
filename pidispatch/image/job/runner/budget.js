// Stops the agent at its budget from inside its own process.
//
// pi awaits these handlers before it sends the next request, so the stop is exact: a job with N turns makes N requests.
// A stop from outside would always be one request late. The runner keeps its own backstop, because pi carries on when
// a handler throws. Registers no command, no tool and no prompt.

function limit(name) {
  const text = process.env[name] ?? "";
  if (text === "") return Infinity;
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new Error(`${name} is not a positive integer`);
  return value;
}

function count(value) {
  return Number.isSafeInteger(value) && value > 0 ? value : 0;
}

function tokensOf(usage) {
  if (!usage) return 0;
  const parts = count(usage.input) + count(usage.output) + count(usage.cacheRead) + count(usage.cacheWrite);
  return Math.max(parts, count(usage.totalTokens));
}

export default function (pi) {
  const maxTurns = limit("RUN_MAX_TURNS");
  const maxTokens = limit("RUN_MAX_TOKENS");
  let turns = 0;
  let tokens = 0;
  const spent = () => turns >= maxTurns || tokens > maxTokens;

  pi.on("turn_end", async (event, ctx) => {
    const message = event.message ?? {};
    const results = event.toolResults ?? [];
    if (message.role === "assistant" && message.stopReason !== "error" && message.stopReason !== "aborted") turns += 1;
    tokens += tokensOf(message.usage);
    for (const result of results) tokens += tokensOf(result.usage);
    // A turn without tool results ends the run by itself: a budget met on the last turn is a completed run.
    if (results.length > 0 && spent()) ctx.abort();
  });

  // Follow-ups and retries open a turn that no tool result announced.
  pi.on("turn_start", async (_event, ctx) => {
    if (spent()) ctx.abort();
  });
}
