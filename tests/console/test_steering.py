"""Access, tasks, webhooks and the system in a real browser."""

from __future__ import annotations

import re
from typing import Any

from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import FailedLogin
from common.console import shown_once
from notifications.models import Delivery, WebhookEndpoint
from tests.console.conftest import Console
from tests.crawling.work import stored_page
from tests.factories.accounts import ClientFactory, UserFactory
from tests.factories.crawling import CrawlErrorFactory, TaskFactory
from tests.factories.notifications import DeliveryFactory, EndpointFactory
from tests.factories.static import static_root  # noqa: F401
from tests.obsrv.console_rows import make_rows, member_of

TASKS = "/admin/crawling/crawltask/"
ENDPOINTS = "/admin/notifications/webhookendpoint/"
DELIVERIES = "/admin/notifications/delivery/"
SYSTEM = "/admin/system/"
HOSTILE = '"><script>alert(1)</script>\u202egnp.exe {{7*7}}'
MINE = (
    TASKS,
    "/admin/crawling/crawlerror/groups/",
    "/admin/crawling/domain/",
    "/admin/crawling/proxy/",
    ENDPOINTS,
    DELIVERIES,
    "/admin/accounts/client/",
    "/admin/accounts/apikey/",
    "/admin/accounts/failedlogin/",
    "/admin/django_celery_beat/periodictask/",
    SYSTEM,
)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).first.click()


def log_in(page: Page, password: str) -> None:
    page.fill("[name=username]", "ana")
    page.fill("[name=password]", password)
    page.click("button[type=submit]")


def test_five_bad_logins_close_the_door(visitor: Console) -> None:
    operator = UserFactory.build(superuser=True, username="ana")
    operator.set_password("a-long-password-1")
    operator.save()
    page = visitor.open("/admin/login/")
    for number in range(5):
        log_in(page, f"wrong {number}")
    expect(page.get_by_text("Wait 15 minutes")).to_be_visible()
    log_in(page, "a-long-password-1")
    expect(page.get_by_text(re.compile("Wait 1[45] minutes"))).to_be_visible()
    FailedLogin.objects.all().delete()
    log_in(page, "a-long-password-1")
    expect(page).to_have_url(f"{visitor.origin}/admin/")


def test_a_task_is_paused_and_resumed_on_its_page(console: Console) -> None:
    task = TaskFactory.create(stored_page=stored_page())
    page = console.open(f"{TASKS}{task.pk}/change/")
    press(page, "pause Pause")
    expect(page.get_by_text("1 paused.")).to_be_visible()
    expect(page.get_by_role("button", name="pause Pause")).to_have_count(0)
    press(page, "play_arrow Resume")
    expect(page.get_by_text("1 resumed.")).to_be_visible()
    task.refresh_from_db()
    assert task.status in ("pending", "queued_parse")


def test_the_secret_of_a_webhook_is_rotated_and_the_grace_counts_down(console: Console) -> None:
    endpoint = EndpointFactory.create(secret_current="whsec_b2xk")
    page = console.open(f"{ENDPOINTS}{endpoint.pk}/change/")
    press(page, "autorenew Rotate the secret")
    expect(page.get_by_text("shown only now")).to_be_visible()
    endpoint.refresh_from_db()
    assert endpoint.secret_previous == "whsec_b2xk"
    expect(page.locator(".shown-once")).to_have_text(endpoint.secret_current)
    left = page.locator("[data-until]")
    expect(left).to_have_text(re.compile(r"^0:59:\d\d$"))
    before = left.inner_text()
    expect(left).not_to_have_text(before)
    assert endpoint.secret_current not in console.open(ENDPOINTS).content()


def test_a_delivery_shows_its_tries_and_is_sent_again(console: Console) -> None:
    delivery = DeliveryFactory.create(status="exhausted", attempt_number=1)
    delivery.attempts.create(
        number=1,
        attempted_at=timezone.now(),
        url=delivery.endpoint.url,
        signature_header="t=1,v1=abc",
        status_code=500,
        response_body=HOSTILE,
    )
    page = console.open(f"{DELIVERIES}{delivery.pk}/change/")
    expect(page.get_by_text("POST https://receiver.example/hooks")).to_be_visible()
    expect(page.get_by_text(HOSTILE)).to_be_visible()
    press(page, "send Send again")
    expect(page.get_by_text("1 being sent again.")).to_be_visible()
    delivery.refresh_from_db()
    assert delivery.status == Delivery.Status.PENDING


def test_a_webhook_is_recovered_from_a_moment_on(console: Console) -> None:
    delivery = DeliveryFactory.create(status="exhausted")
    page = console.open(ENDPOINTS)
    page.locator("[name=_selected_action]").check()
    page.select_option("select[name=action]", "recover")
    page.click("button[name=index]")
    press(page, "Recover")
    expect(page.get_by_text("being recovered")).to_be_visible()
    delivery.refresh_from_db()
    assert delivery.status == Delivery.Status.PENDING


def test_the_first_key_of_a_client_is_one_click_away(console: Console) -> None:
    client = ClientFactory.create(name="Acme")
    page = console.open(f"/admin/accounts/client/{client.pk}/change/")
    page.get_by_role("link", name="New key for this client").click()
    page.fill("[name=name]", "warehouse")
    page.check("[name=scopes][value=read]")
    page.click("button[name=_save]")
    expect(page.locator(".shown-once")).to_have_text(re.compile("^obsrv_live_"))
    assert client.api_keys.get().name == "warehouse"


def test_the_system_says_how_its_queues_are(console: Console) -> None:
    page = console.open(SYSTEM)
    expect(page.get_by_text("no worker").first).to_be_visible()
    page.get_by_role("link", name="Retention: see what would go").click()
    expect(page.get_by_text("Nothing is past its retention")).to_be_visible()


def cookie_of(console: Console, user: Any) -> None:
    from django.conf import settings
    from django.test import Client as TestClient

    session = TestClient()
    session.force_login(user)
    name = settings.SESSION_COOKIE_NAME
    value = session.cookies[name].value
    console.context.add_cookies([{"name": name, "value": value, "url": console.origin}])


def test_a_viewer_sees_no_button_and_a_forged_post_is_refused(visitor: Console) -> None:
    endpoint = EndpointFactory.create()
    cookie_of(visitor, member_of("viewer"))
    path = f"{ENDPOINTS}{endpoint.pk}/change/"
    page = visitor.open(path)
    expect(page.get_by_role("button", name="Rotate the secret")).to_have_count(0)
    status = page.evaluate(
        """async (path) => {
            const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
            const body = new URLSearchParams({
                csrfmiddlewaretoken: token,
                notifications_webhookendpoint_rotate_this: "",
            });
            return (await fetch(path, {method: "POST", body})).status;
        }""",
        path,
    )
    assert status == 403
    visitor.troubles = [one for one in visitor.troubles if "403" not in one]
    assert WebhookEndpoint.objects.get().secret_current == endpoint.secret_current


def test_hostile_texts_of_shops_and_receivers_stay_texts(console: Console) -> None:
    error = CrawlErrorFactory.create(
        message=HOSTILE, task__url="https://shop.example/<b>", task__status="failed"
    )
    delivery = DeliveryFactory.create(last_error=HOSTILE[:200], status="retrying")
    UserFactory.create(username="x")
    FailedLogin.objects.create(username=HOSTILE, address="x", failures=5, last_at=timezone.now())
    for place in (TASKS, "/admin/crawling/crawlerror/groups/", "/admin/accounts/failedlogin/"):
        console.open(place)
    expect(console.open(DELIVERIES).get_by_text(HOSTILE[:20]).first).to_be_visible()
    for place in (f"{TASKS}{error.task_id}/change/", f"{DELIVERIES}{delivery.pk}/change/"):
        console.open(place)


def test_the_screens_fit_a_phone(console: Console) -> None:
    make_rows(2)
    console.page.set_viewport_size({"width": 390, "height": 844})
    for place in MINE:
        page = console.open(place)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, place


def test_the_pictures_go_dark(console: Console) -> None:
    TaskFactory.create()
    console.page.emulate_media(color_scheme="dark")
    page = console.open(TASKS)
    expect(page.locator("html")).to_have_class(re.compile(r"\bdark\b"))
    paper = page.locator(".plot").first.evaluate("one => getComputedStyle(one).backgroundColor")
    assert paper != "rgb(255, 255, 255)"


def test_each_of_two_secrets_is_copied_by_its_own_button(console: Console) -> None:
    page = console.open(SYSTEM)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    shown = "".join(f"<p>{shown_once(name, name)}</p>" for name in ("first", "second"))
    page.locator("body").evaluate("(body, shown) => { body.innerHTML = shown }", shown)
    for name, button in zip(("first", "second"), page.locator("[data-copy]").all(), strict=True):
        button.click()
        expect(button).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == name
