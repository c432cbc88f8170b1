from __future__ import annotations

import datetime as dt
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from crawling.models import Domain, DomainProxy
from crawling.proxies import Choice, Chooser, load_chooser
from tests.factories.crawling import DomainFactory, DomainProxyFactory, ProxyFactory

pytestmark = pytest.mark.django_db
NOW = dt.datetime(2026, 5, 4, 12, 10, tzinfo=dt.UTC)
SECOND, MINUTE = dt.timedelta(seconds=1), dt.timedelta(minutes=1)


def make(rotation: str = "lru", **mappings: int) -> tuple[Domain, dict[str, DomainProxy]]:
    """A domain with proxies, by their names and priorities."""
    domain = DomainFactory.create(proxy_rotation=rotation)
    return domain, {
        name: DomainProxyFactory.create(domain=domain, proxy__host=name, priority=priority)
        for name, priority in mappings.items()
    }


def use(chooser: Chooser, now: dt.datetime, *, ok: bool = True, ms: float = 100) -> Choice:
    choice = chooser.choose(now)
    assert choice is not None
    chooser.report(choice, ok=ok, elapsed_ms=ms if ok else None, now=now + SECOND)
    return choice


def turns(chooser: Chooser, count: int, start: dt.datetime = NOW) -> list[str]:
    return [use(chooser, start + n * MINUTE).address.host for n in range(count)]


def test_a_domain_without_proxies_needs_none() -> None:
    chooser = load_chooser(DomainFactory.create())
    assert not chooser.required
    assert chooser.choose(NOW) is None


def test_the_least_recently_used_goes_first_also_over_visits() -> None:
    domain, _ = make(a=5, b=5, c=5)
    chooser = load_chooser(domain)
    assert turns(chooser, 4) == ["a", "b", "c", "a"]
    chooser.save()
    assert use(load_chooser(domain), NOW + 9 * MINUTE).address.host == "b"


def test_round_robin_keeps_the_order_over_visits() -> None:
    domain, _ = make("round_robin", a=5, b=5, c=5)
    chooser = load_chooser(domain)
    assert turns(chooser, 2) == ["a", "b"]
    chooser.save()
    assert turns(load_chooser(domain), 3, NOW + 9 * MINUTE) == ["c", "a", "b"]


def test_the_least_used_catches_up() -> None:
    domain, found = make("least_used", a=5, b=5)
    DomainProxy.objects.filter(id=found["a"].id).update(success_count=2)
    assert turns(load_chooser(domain), 5) == ["b", "b", "a", "b", "a"]


def test_random_uses_all() -> None:
    domain, _ = make("random", a=5, b=5)
    assert set(turns(load_chooser(domain), 40)) == {"a", "b"}


@pytest.mark.parametrize("rotation", Domain.Rotation.values)
def test_a_preferred_proxy_is_used_until_it_rests(rotation: str) -> None:
    domain, _ = make(rotation, spare=9, first=1)
    chooser = load_chooser(domain)
    assert turns(chooser, 3) == ["first"] * 3
    use(chooser, NOW + 4 * MINUTE, ok=False)
    assert use(chooser, NOW + 5 * MINUTE).address.host == "spare"


def test_a_failure_rests_the_mapping_and_the_rest_doubles() -> None:
    domain, found = make(a=5)
    now = NOW
    for minutes in (15, 30, 60, 120):
        chooser = load_chooser(domain)
        use(chooser, now, ok=False)
        failed_at = now + SECOND
        assert chooser.choose(failed_at) is None
        assert chooser.next_usable_at(failed_at) == failed_at + minutes * MINUTE
        chooser.save()
        assert load_chooser(domain).next_usable_at(failed_at) == failed_at + minutes * MINUTE
        now = failed_at + minutes * MINUTE
    found["a"].refresh_from_db()
    assert (found["a"].consecutive_failures, found["a"].is_active) == (4, True)


def test_after_a_rest_one_probe_goes_out_and_its_success_forgives() -> None:
    domain, found = make(a=5)
    chooser = load_chooser(domain)
    use(chooser, NOW, ok=False)
    later = NOW + 16 * MINUTE
    probe = chooser.choose(later)
    assert probe is not None
    assert chooser.choose(later) is None
    assert later < chooser.next_usable_at(later) < later + MINUTE
    chooser.report(probe, ok=True, elapsed_ms=50, now=later)
    assert chooser.choose(later) is not None
    assert chooser.choose(later) is not None
    chooser.save()
    found["a"].refresh_from_db()
    assert (found["a"].consecutive_failures, found["a"].resting_until) == (0, None)


def test_requests_that_were_under_way_together_count_as_one_failure_in_a_row() -> None:
    domain, found = make(a=5)
    chooser = load_chooser(domain)
    together = [chooser.choose(NOW) for _ in range(8)]
    for choice in together:
        assert choice is not None
        chooser.report(choice, ok=False, elapsed_ms=None, now=NOW + SECOND)
    chooser.save()
    found["a"].refresh_from_db()
    assert (found["a"].failure_count, found["a"].consecutive_failures) == (8, 1)
    assert found["a"].is_active


def fail(domain: Domain, times: int, *, days: int = 2) -> None:
    for n in range(times):
        chooser = load_chooser(domain)
        use(chooser, NOW + n * dt.timedelta(days=days), ok=False)
        chooser.save()


def test_five_failures_in_a_row_switch_off_the_mapping_and_not_the_proxy() -> None:
    domain, found = make(a=5)
    fail(domain, 4)
    with capture_logs() as logs:
        chooser = load_chooser(domain)
        now = NOW + dt.timedelta(days=30)
        use(chooser, now, ok=False)
        chooser.save()
    found["a"].refresh_from_db()
    assert (found["a"].is_active, found["a"].proxy.is_active) == (False, True)
    (line,) = [log for log in logs if log["event"] == "proxy.disabled"]
    assert line["domain"] == domain.host
    chooser = load_chooser(domain)
    much_later = now + dt.timedelta(days=30)
    assert chooser.required
    assert chooser.choose(much_later) is None
    assert chooser.next_usable_at(much_later) > much_later


def test_ten_failures_in_a_row_over_all_domains_switch_off_the_proxy() -> None:
    proxy = ProxyFactory.create()
    for n in range(10):
        proxy.refresh_from_db()
        assert proxy.is_active, n
        chooser = load_chooser(DomainProxyFactory.create(proxy=proxy).domain)
        use(chooser, NOW + n * dt.timedelta(days=2), ok=False)
        chooser.save()
    proxy.refresh_from_db()
    assert (proxy.is_active, proxy.consecutive_failures) == (False, 10)
    assert "10 times" in proxy.disabled_reason


def test_one_dead_shop_does_not_rest_the_proxy_for_others() -> None:
    proxy = ProxyFactory.create()
    dead, alive = (DomainProxyFactory.create(proxy=proxy).domain for _ in range(2))
    chooser = load_chooser(dead)
    use(chooser, NOW, ok=False)
    chooser.save()
    assert load_chooser(alive).choose(NOW + SECOND) is not None


def test_two_workers_add_to_each_others_figures() -> None:
    proxy = ProxyFactory.create()
    one, other = (load_chooser(DomainProxyFactory.create(proxy=proxy).domain) for _ in range(2))
    use(one, NOW, ms=100)
    use(other, NOW, ms=200)
    one.save()
    other.save()
    proxy.refresh_from_db()
    assert proxy.success_count == 2
    assert proxy.response_ms_ewma == pytest.approx(120)
    one.save()
    proxy.refresh_from_db()
    assert proxy.success_count == 2


def test_saving_asks_the_database_as_often_for_many_as_for_one(
    django_assert_max_num_queries: Callable[..., object],
) -> None:
    domain = DomainFactory.create()
    DomainProxyFactory.create_batch(12, domain=domain)
    chooser = load_chooser(domain)
    turns(chooser, 24)
    # Two savepoints of the outer and the inner transactions, two locks, two updates.
    with django_assert_max_num_queries(10):  # type: ignore[attr-defined]
        chooser.save()


def test_a_proxy_is_used_no_more_than_its_hour_allows() -> None:
    domain, found = make(a=5)
    proxy = found["a"].proxy
    proxy.max_requests_per_hour = 3
    proxy.save()
    chooser = load_chooser(domain)
    use(chooser, NOW)
    assert chooser.choose(NOW) is not None
    chooser.save()
    use(load_chooser(domain), NOW)
    assert chooser.choose(NOW) is not None
    assert chooser.choose(NOW) is None
    full_hour = NOW.replace(hour=13, minute=0)
    assert chooser.next_usable_at(NOW) == full_hour
    fresh = load_chooser(domain)
    use(fresh, NOW)
    use(fresh, NOW)
    fresh.save()
    assert load_chooser(domain).choose(NOW) is None
    assert load_chooser(domain).choose(full_hour) is not None
