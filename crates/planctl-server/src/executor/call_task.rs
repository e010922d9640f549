//! A call: the order to the server whose tool it uses, or the outputs of earlier steps that its command reads.

use std::collections::BTreeMap;

use planctl_engine::{Contract, Node, NodeId, NodeKind};
use planctl_harness::{ContractRunner, Gate};
use planctl_lang::tools::{Outputs, ToolUse, outputs_read};
use planctl_store::Claimed;
use planctl_tools::{Calls, KeptLists, Order, Request};

use super::Executor;
use crate::node::services::ServiceError;
use crate::verify::tools::{resolve_server, with_order};

impl Executor {
    /// Says whether a gate is a call that leaves the files of the workspace alone, so that it runs beside other gates there.
    pub(super) fn runs_beside_others(&self, claimed: &Claimed, contract: &Contract) -> bool {
        let is_call = claimed.graph.node(&claimed.item.at.node).and_then(Node::call).is_some();
        let used = ToolUse::read(&contract.command).filter(|_| is_call);
        let server = |used: &ToolUse| self.settings.servers.get(&used.server);
        used.is_some_and(|used| server(&used).is_some_and(|server| server.runs_beside_others(&used.tool)))
    }

    /// Returns a runner that carries the call of a node out; or the gate of one that can't be, in which nothing ran.
    pub(super) async fn call_runner(
        &self,
        runner: ContractRunner,
        claimed: &Claimed,
        contract: &Contract,
    ) -> Result<Result<ContractRunner, Gate>, ServiceError> {
        let runner = runner.at_node(claimed.item.at.node.as_str());
        let Some(used) = ToolUse::read(&contract.command) else {
            let outputs = self.outputs_of(claimed, outputs_read(&contract.command)).await?;
            let outputs: BTreeMap<String, Vec<u8>> =
                outputs.into_iter().map(|(node, text)| (node, text.into_bytes())).collect();
            return Ok(Ok(runner.with_outputs(outputs)));
        };
        let refused = |why: &str| Ok(Err(runner.refused_gate(contract, why)));
        let Some(server) = self.settings.servers.get(&used.server) else {
            return refused(&format!("the approved configuration has no server {:?}", used.server));
        };
        // The graph has a person asked; one that does not was made for other effects than those that are approved.
        let call = claimed.graph.node(&claimed.item.at.node).and_then(Node::call);
        let may = self.settings.effects_of(call.and_then(|call| call.role.as_ref()));
        let is_asked = call.is_some_and(|call| call.approval.is_some());
        if let Some(why) = may.asks(server.effects_of(&used.tool)).filter(|_| !is_asked) {
            return refused(&format!("{} of {} needs a person's word: {why}", used.tool, used.server));
        }
        let reached = match resolve_server(server) {
            Ok(reached) => reached,
            Err(error) => return refused(&error.to_string()),
        };
        let nodes = used.references().into_iter().filter_map(|reference| reference.ok()?.node).collect();
        let list = KeptLists::new(&self.state_dir).get(&reached);
        let has_network = server.has_network(Some(&used.tool));
        let parallel = usize::from(claimed.graph.limits().parallel);
        let calls = Calls {
            known: None,
            at_once: if server.runs_beside_others(&used.tool) { parallel } else { 1 },
            tool: used.tool,
            arguments: used.arguments,
            for_each: used.for_each,
            outputs: self.outputs_of(claimed, nodes).await?,
        };
        let order = Order::Call(Box::new(calls.with_known(list.as_ref())));
        let request = Request { server: reached, order };
        let ordered = with_order(runner.clone(), &request, has_network);
        Ok(ordered.map_err(|why| runner.refused_gate(contract, &why)))
    }

    /// Returns what these nodes gave: what their newest gates printed, or what a person answered. A node whose output was too
    /// long to be kept whole gave none.
    async fn outputs_of(&self, claimed: &Claimed, names: Vec<String>) -> Result<Outputs, ServiceError> {
        let mut outputs = Outputs::new();
        let nodes: Vec<NodeId> = names.into_iter().map(NodeId::new).collect();
        if nodes.is_empty() {
            return Ok(outputs);
        }
        for (node, printed) in self.store.printed_by(self.run, &nodes).await? {
            let whole = match &printed.stored {
                Some(digest) => {
                    self.store.output(digest).await?.filter(|bytes| bytes.len() as u64 == printed.bytes)
                }
                None => Some(printed.tail.into_bytes()),
            };
            if let Some(bytes) = whole {
                outputs.insert(node.as_str().to_owned(), String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        let is_answer = |node: &NodeId| {
            matches!(claimed.graph.node(node).map(|node| &node.kind), Some(NodeKind::Human(_)))
        };
        if nodes.iter().any(is_answer) {
            let view = self.store.run_view(self.run).await?;
            for node in nodes.iter().filter(|node| is_answer(node)) {
                let details = view.records.get(node).and_then(|record| record.attempt_details.as_ref());
                if let Some(answer) = details.and_then(|details| details.output.clone()) {
                    outputs.insert(node.as_str().to_owned(), answer);
                }
            }
        }
        Ok(outputs)
    }
}
