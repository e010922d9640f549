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
  const begun = new Set()
  // Sessions that are sent back: the next message in them is planctl's own, and begins no turn.
  const sentBack = new Set()
  return {
    "chat.message": async (input, output) => {
      if (sentBack.delete(input.sessionID)) return
      const event = begun.has(input.sessionID) ? "prompt" : "start"
      begun.add(input.sessionID)
      const { context } = await hook(event, told(input.sessionID))
      const first = output.parts.find((part) => part.type === "text" && !part.synthetic)
      if (context && first) first.text = `${first.text}\n\n${context}`
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
      await hook("tool-done", {
        ...told(input.sessionID),
        tool_name: input.tool,
        tool_input: input.args ?? {},
        tool_response: { output: output.output, metadata: output.metadata },
      })
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
      if (note) await client.tui.showToast({ body: { message: note, variant: "info" } }).catch(() => {})
    },
  }
}
