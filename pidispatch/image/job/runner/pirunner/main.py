"""The runner's main: start-up checks in their order, the session, and exactly one exit line whatever happens."""

import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

from pirunner import agent_home, checks, children, compile_cache, environment, inputs, launch, report, signals
from pirunner.agent import Agent, AgentGone, Inbox, Notice, Terminated
from pirunner.environment import Environment
from pirunner.layout import Layout
from pirunner.lines import Lines, cap_message
from pirunner.meter import Meter
from pirunner.refusal import InfraFailure, Refusal, config
from pirunner.session import Session
from pirunner.termination import Termination
from pirunner.verdict import TERMINATED, Verdict, means_not_configured

#: Part of the time to terminate that pi gets to report what its aborted call has spent.
_ABORT_SHARE = 0.5
#: Part of it that a pi which ignores SIGTERM gets.
_KILL_SHARE = 0.15
#: Seconds to end all processes the agent left behind. They are killed, so only the kernel can delay it.
_SWEEP_SECONDS = 2.0


def main(argv: Sequence[str], environ: Mapping[str, str], layout: Layout) -> int:
    """Run the job and return the exit code, which is also the exit line's. Main thread only."""
    runner = Runner(environ, layout)
    code = runner.lines.exit(runner.outcome(argv))
    runner.termination.dismiss()
    return code


class Runner:
    """One job, from its environment to the fields of its exit line."""

    def __init__(self, environ: Mapping[str, str], layout: Layout) -> None:
        self._environ = environ
        self._layout = layout
        self._inbox = Inbox()
        self._agent: Agent | None = None
        self._meter = Meter()
        self._window: int | None = None
        self._pi_ai: str | None = None
        self.lines = Lines(environ.get("PI_JOB_ID", ""))
        self.termination = Termination(
            self._inbox, self.lines, layout.terminate_seconds, lambda: self._fields(TERMINATED)
        )

    def outcome(self, argv: Sequence[str]) -> Mapping[str, object]:
        """The exit line's fields; never raises."""
        try:
            return self._fields(self._run(argv))
        except Refusal as refusal:
            return self._failure(2, refusal.reason, refusal.message)
        except InfraFailure as failure:
            return self._failure(1, "infra", failure.message)
        except BaseException as error:  # an untyped end must not pass for the agent's own exit 1
            return self._failure(1, "infra", f"{type(error).__name__}: {error}")

    # -- the run

    def _run(self, argv: Sequence[str]) -> Verdict:
        signals.watch(
            {
                signal.SIGTERM: self.termination.request,
                signal.SIGINT: self.termination.request,
                signal.SIGCHLD: self._child_ended,
            }
        )
        asked = environment.parse(self._environ)
        if len(argv) > 1:
            raise config("the runner takes no arguments: everything it needs is in its environment")
        inputs.check_readable(self._layout)
        prompt = inputs.read_prompt(self._layout)
        inputs.check_rules(self._layout)
        home = Path(asked.home) if asked.home else self._layout.default_home
        inputs.check_writable(self._layout, home, self.lines)
        agent_dir = agent_home.prepare(home, self._layout, asked, self.lines)
        compiled = compile_cache.offer(self._layout.compile_cache, home)
        variables = launch.process_environment(self._environ, asked, home, agent_dir, compiled)
        try:
            agent = Agent(launch.command(asked, self._layout), self._layout.workspace, variables, self._inbox)
        except OSError as error:
            raise InfraFailure(f"pi could not be started: {error}") from error
        self._agent = agent
        return self._with(agent, asked, prompt)

    def _with(self, agent: Agent, asked: Environment, prompt: str) -> Verdict:
        """Drive the started agent; whatever happens, no process is left behind."""
        try:
            checks.ask(agent)
            children.adopt_orphans()
            children.close_to_others()
            self._pi_ai = report.pi_ai_version(self._layout.pi_ai_manifest)
            verdict = self._drive(agent, asked, prompt)
        finally:
            self._stop(agent)
            children.kill_descendants(_SWEEP_SECONDS)
            for record in agent.leftovers(_SWEEP_SECONDS):
                self._meter.observe(record)
        return TERMINATED if self.termination.requested else verdict

    def _stop(self, agent: Agent) -> None:
        settle, kill = self._layout.settle_seconds, self._layout.kill_seconds
        if self.termination.requested:
            settle, kill = 0.0, min(kill, self._layout.terminate_seconds * _KILL_SHARE)
        agent.stop(settle, kill)

    def _drive(self, agent: Agent, asked: Environment, prompt: str) -> Verdict:
        session = Session(agent, asked, self._layout, self.lines)
        self._meter = session.meter
        try:
            self._check(agent, asked, prompt)
            return session.converse(prompt)
        except Terminated:
            session.abort(self._layout.terminate_seconds * _ABORT_SHARE)
            return TERMINATED

    def _check(self, agent: Agent, asked: Environment, prompt: str) -> None:
        try:
            answers = checks.collect(agent, self._layout.reply_seconds)
        except AgentGone as error:
            words = agent.last_words()
            raise config(words) if means_not_configured(words) else InfraFailure(words) from error
        checks.check_model(answers, asked)
        checks.check_flow(answers, asked, prompt, self.lines)
        self._window = checks.context_window(answers)

    def _child_ended(self) -> None:
        if self._agent is not None:
            children.reap_orphans(keep=self._agent.pid)
        self._inbox.put(Notice.CHILD_ENDED)

    # -- the exit line

    def _fields(self, verdict: Verdict) -> Mapping[str, object]:
        fields: dict[str, object] = {"code": verdict.code, "reason": verdict.reason, "turns": self._meter.turns}
        if verdict.truncated:
            fields["truncated"] = True
        if verdict.message:
            fields["message"] = self._safe(verdict.message)
        fields["tokens"] = report.tokens(self._meter)
        optional = {
            "usage": report.usage(self._meter, self._pi_ai),
            "context": report.context(self._meter, self._window),
        }
        return fields | {name: value for name, value in optional.items() if value is not None}

    def _failure(self, code: int, reason: str, message: str) -> Mapping[str, object]:
        """A run that ended before its prompt, or by an error of the runner's own. Spending, if any, is reported."""
        fields: dict[str, object] = {"code": code, "reason": reason, "message": self._safe(message)}
        if self._meter.total.calls:
            fields["turns"] = self._meter.turns
            fields["tokens"] = report.tokens(self._meter)
        return fields

    def _safe(self, message: str) -> str:
        return cap_message(message, environment.secrets(self._environ))
