"""The state machine against a plain-Python model: whatever people and workers do in
whatever order, tasks move only as the table allows and job counters tell the truth."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from pytest_django import Settings

from common.errors import Refused
from crawling import control, job_control, leases
from crawling.control import Order
from crawling.fetching import Failure
from crawling.models import CrawlJob, CrawlTask
from crawling.selections import TaskFilter
from tests.crawling.work import PERMANENT, TRANSIENT, claim_all, expire_all, finish, job_with

JOBS, TASKS = 2, 3
jobs_ = st.integers(0, JOBS - 1)
tasks_ = st.integers(0, JOBS * TASKS - 1)
TERMINAL = {"completed", "failed", "cancelled"}
# Written apart from the table it checks.
PAUSE = {"pending": "paused", "queued": "paused", "crawling": "paused"}
RESUME = {"paused": "pending"}
CANCEL = dict.fromkeys(("pending", "queued", "crawling", "paused"), "cancelled")
RESTART = dict.fromkeys(("queued", "crawling", "failed", "paused"), "pending")
MOVES = {"pause": PAUSE, "resume": RESUME, "cancel": CANCEL, "restart": RESTART}
# In which state of the job.
JOB_ACTS = {
    "pause": {"pending", "running"},
    "resume": {"paused"},
    "cancel": {"pending", "running", "paused"},
    "retry": {"running", "partial_success", "failed"},
}
ACTS: dict[str, Callable[..., Any]] = {
    "pause": control.pause,
    "resume": control.resume,
    "cancel": control.cancel,
    "restart": control.restart,
}


class Crawler(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.undo = transaction.atomic()
        self.undo.__enter__()
        self.jobs = [
            job_with(*(f"https://s{j}.example/{n}" for n in range(TASKS))) for j in range(JOBS)
        ]
        self.ids = list(CrawlTask.objects.order_by("url").values_list("id", flat=True))
        self.state = dict.fromkeys(self.ids, "pending")
        self.claims: dict[uuid.UUID, int] = dict.fromkeys(self.ids, 0)
        self.deaths: dict[uuid.UUID, int] = dict.fromkeys(self.ids, 0)
        self.tries: dict[uuid.UUID, int] = dict.fromkeys(self.ids, 0)
        self.living: dict[uuid.UUID, leases.Claim] = {}
        self.late: list[leases.Claim] = []

    def teardown(self) -> None:
        if hasattr(self, "undo"):
            transaction.set_rollback(True)
            self.undo.__exit__(None, None, None)

    def task(self, index: int) -> CrawlTask:
        return CrawlTask.objects.get(pk=self.ids[index])

    def of_job(self, index: int) -> list[uuid.UUID]:
        return self.ids[index * TASKS : (index + 1) * TASKS]

    def move(self, pk: uuid.UUID, to: str) -> None:
        if pk in self.living and to != "crawling":
            self.late.append(self.living.pop(pk))
        self.state[pk] = to

    def order(self, pk: uuid.UUID, action: str) -> None:
        if action in ("resume", "restart"):
            self.claims[pk] = 0
        if action == "restart":
            self.tries[pk] = 0
        self.move(pk, MOVES[action][self.state[pk]])

    @rule(count=st.integers(1, TASKS))
    def claim(self, count: int) -> None:
        CrawlTask.objects.filter(status="pending").update(scheduled_at="2020-01-01T00:00:00Z")
        for claim in claim_all(count):
            assert self.state[claim.id] in ("pending", "queued")
            self.move(claim.id, "crawling")
            self.deaths[claim.id] = self.claims[claim.id]
            self.claims[claim.id] += 1
            leases.begin(claim)
            self.living[claim.id] = claim

    @rule(index=tasks_, failure=st.sampled_from([None, PERMANENT, TRANSIENT]))
    def finish(self, index: int, failure: Failure | None) -> None:
        claim = self.living.get(self.ids[index])
        if claim is None:
            return
        assert finish(claim, failure) == 1
        retry = failure is TRANSIENT and self.tries[claim.id] < claim.max_retries
        self.tries[claim.id] += retry
        self.claims[claim.id] = 0
        self.move(claim.id, "pending" if retry else "failed" if failure else "completed")

    @rule(failure=st.sampled_from([None, PERMANENT]))
    def finish_late(self, failure: Failure | None) -> None:
        for claim in self.late:
            assert finish(claim, failure) == 0

    @rule()
    def give_back(self) -> None:
        leases.return_tasks(list(self.living.values()))
        for pk in list(self.living):
            self.claims[pk] = self.deaths[pk]
            self.move(pk, "pending")

    @rule()
    def die(self) -> None:
        expire_all()
        leases.return_expired()
        for pk in list(self.living):
            self.move(pk, "failed" if self.claims[pk] >= 3 else "pending")

    @rule(index=tasks_, action=st.sampled_from(sorted(MOVES)))
    def do(self, index: int, action: str) -> None:
        pk = self.ids[index]
        if self.state[pk] not in MOVES[action]:
            with pytest.raises(Refused):
                ACTS[action](self.task(index))
            return
        ACTS[action](self.task(index))
        self.order(pk, action)

    @rule(index=jobs_, action=st.sampled_from(sorted(MOVES)), dry_run=st.booleans())
    def do_to_many(self, index: int, action: str, dry_run: bool) -> None:
        chosen = TaskFilter(job=self.jobs[index].pk)
        outcome = control.bulk(Order(action=action), chosen, dry_run=dry_run)
        wanted = [pk for pk in self.of_job(index) if self.state[pk] in MOVES[action]]
        assert sorted(outcome.ids) == sorted(wanted)
        for pk in wanted if not dry_run else ():
            self.order(pk, action)

    def may_act(self, index: int, action: str) -> bool:
        failed = "failed" in {self.state[pk] for pk in self.of_job(index)}
        allowed = self.jobs[index].status in JOB_ACTS[action]
        return allowed and (failed or action != "retry")

    @rule(index=jobs_, action=st.sampled_from(sorted(JOB_ACTS)))
    def do_to_a_job(self, index: int, action: str) -> None:
        act, job = getattr(job_control, f"{action}_job"), self.jobs[index]
        job.refresh_from_db()
        if not self.may_act(index, action):
            with pytest.raises(Refused):
                act(job)
            return
        act(job)
        step = "restart" if action == "retry" else action
        for pk in self.of_job(index):
            if action == "retry" and self.state[pk] != "failed":
                continue
            if self.state[pk] in MOVES[step]:
                self.order(pk, step)

    @invariant()
    def tasks_are_where_the_model_says(self) -> None:
        if hasattr(self, "ids"):
            assert dict(CrawlTask.objects.values_list("id", "status")) == self.state

    @invariant()
    def counters_tell_the_truth(self) -> None:
        for index, job in enumerate(getattr(self, "jobs", ())):
            job.refresh_from_db()
            states = [self.state[pk] for pk in self.of_job(index)]
            done = [state for state in states if state in ("completed", "failed")]
            assert (job.total, job.processed) == (TASKS, len(done))
            assert job.errors == states.count("failed")
            over = set(states) <= TERMINAL
            assert over == (job.status not in CrawlJob.LIVE), (states, job.status)
            assert over == (job.completed_at is not None)


@pytest.mark.django_db
def test_tasks_move_only_as_the_table_allows_and_counters_tell_the_truth(
    settings: Settings,
) -> None:
    settings.PAGE_CONSUMERS = {"test": "tests.crawling.work.accept_all"}
    settings.JOB_CONSUMERS = {}
    run_state_machine_as_test(Crawler, settings=QUICK)


QUICK = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
