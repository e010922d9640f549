// Holds the sessions of this project to their plan; written by `planctl guide install opencode`, which also takes it away.
import { spawn } from "node:child_process"

const PROGRAM = "PLANCTL"

// Calls planctl's hook. Where it can't run, the session goes on, and nothing passes.
const hook = (event, told) =>
  new Promise((resolve) => {
    const child = spawn(PROGRAM, ["hook", "opencode", event], { stdio: ["pipe", "pipe", "ignore"] })
    let said = ""
    child.stdout.on("data", (text) => (said += text))
    child.on("error", () => resolve({}))
    child.on("close", () => {
      try {
        resolve(JSON.parse(said))
      } catch {
        resolve({})
      }
    })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(told))
  })

export const Planctl = async ({ client, directory }) => {
  const told = (session_id) => ({ session_id, cwd: directory })
  const text = (text) => ({ parts: [{ type: "text", text }] })
  // Sessions that have read the plan.
  const begun = new Set()
  // Sessions that are sent back: the next message in them is planctl's own, and begins no turn.
  const sentBack = new Set()
  const say = (message) => client.tui.showToast({ body: { message, variant: "info" } }).catch(() => {})
  // Calls a hook that may have something for the session to read.
  const heard = async (event, told) => {
    const { context, note } = await hook(event, told)
    if (note) await say(note)
    return context
  }
  return {
    "chat.message": async (input, output) => {
      if (sentBack.delete(input.sessionID)) return
      const first = output.parts.find((part) => part.type === "text" && !part.synthetic)
      const prompt = { ...told(input.sessionID), prompt: first?.text ?? "" }
      const events = begun.has(input.sessionID) ? ["prompt"] : ["start", "prompt"]
      begun.add(input.sessionID)
      for (const event of events) {
        const read = await heard(event, prompt)
        if (read && first) first.text = `${first.text}\n\n${read}`
      }
    },
    "tool.execute.before": async (input, output) => {
      const { refuse } = await hook("tool", {
        ...told(input.sessionID),
        tool_name: input.tool,
        tool_input: output.args,
      })
      if (refuse) throw new Error(refuse)
    },
    "tool.execute.after": async (input, output) => {
      const { note } = await hook("tool-done", {
        ...told(input.sessionID),
        tool_name: input.tool,
        tool_input: input.args ?? {},
        tool_response: { output: output.output, metadata: output.metadata },
      })
      if (note) await say(note)
    },
    // What is made of the conversation has the plan, and the next message of the person begins with it again.
    "experimental.session.compacting": async (input, output) => {
      begun.delete(input.sessionID)
      const read = await heard("start", told(input.sessionID))
      if (read) output.context.push(read)
    },
    event: async ({ event }) => {
      if (event.type !== "session.idle") return
      const id = event.properties.sessionID
      const session = await client.session.get({ path: { id } })
      // A session within another one ends nobody's turn.
      if (session.data?.parentID) return
      const { sendBack, note } = await hook("stop", told(id))
      if (sendBack) sentBack.add(id)
      if (sendBack) await client.session.prompt({ path: { id }, body: text(sendBack) })
      if (note) await say(note)
    },
  }
}
