"""Clients of the door of intents: as it is, and as it is for EMCO's clients."""

from __future__ import annotations

import pytest

from dovetail.service.intents.settings import IntentSettings
from tests.rest.conftest import Make
from tests.rest.intents.client import IntentsClient


@pytest.fixture
def intents(serve: Make) -> IntentsClient:
    return IntentsClient(serve())


@pytest.fixture
def emco(serve: Make) -> IntentsClient:
    return IntentsClient(serve(intent_settings=IntentSettings(emco_status_codes=True)))
