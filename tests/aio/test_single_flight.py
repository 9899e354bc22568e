"""Work that many ask for at once is done once, and one who leaves does not end it for others."""

from __future__ import annotations

import asyncio

import pytest

from dovetail.aio.single_flight import NextRun, SingleFlight


class TestSingleFlight:
    async def test_callers_of_one_key_share_the_call_under_way(self) -> None:
        calls: list[str] = []

        async def story() -> list[str]:
            flight: SingleFlight[str, str] = SingleFlight()

            async def ask() -> str:
                calls.append("asked")
                await asyncio.sleep(0.01)
                return f"answer {len(calls)}"

            first = await asyncio.gather(*(flight.call("key", ask) for _ in range(3)))
            return [*first, await flight.call("key", ask)]

        assert await story() == ["answer 1"] * 3 + ["answer 2"]

    async def test_keys_do_not_wait_for_each_other(self) -> None:
        async def story() -> str:
            flight: SingleFlight[str, str] = SingleFlight()

            async def never() -> str:
                await asyncio.sleep(3600)
                return "never"

            async def at_once() -> str:
                return "at once"

            slow = asyncio.create_task(flight.call("slow", never))
            await asyncio.sleep(0)
            answer = await flight.call("quick", at_once)
            await flight.close()
            assert (await asyncio.gather(slow, return_exceptions=True))[0] is not None
            return answer

        assert await story() == "at once"

    async def test_an_error_is_raised_to_all_who_waited_and_not_kept(self) -> None:
        flight: SingleFlight[str, str] = SingleFlight()

        async def fail() -> str:
            await asyncio.sleep(0)
            raise ValueError("no")

        async def work() -> str:
            return "yes"

        both = await asyncio.gather(
            flight.call("key", fail), flight.call("key", fail), return_exceptions=True
        )
        assert [str(each) for each in both] == ["no", "no"]
        assert not flight.is_under_way("key")
        assert await flight.call("key", work) == "yes"

    async def test_closing_ends_calls_under_way(self) -> None:
        flight: SingleFlight[str, None] = SingleFlight()

        async def hang() -> None:
            await asyncio.sleep(3600)

        waiting = asyncio.create_task(flight.call("key", hang))
        await asyncio.sleep(0)
        await flight.close()
        with pytest.raises(asyncio.CancelledError):
            await waiting


class TestNextRun:
    async def test_who_asks_during_a_run_gets_the_next_one(self) -> None:
        runs: list[int] = []

        async def work() -> int:
            runs.append(len(runs))
            await asyncio.sleep(0.01)
            return runs[-1]

        async def story() -> list[int]:
            shared = NextRun(work)
            first = asyncio.create_task(shared.join())
            await asyncio.sleep(0.001)
            return [*await asyncio.gather(shared.join(), shared.join()), await first]

        assert await story() == [1, 1, 0]

    async def test_an_error_is_for_those_who_waited_for_that_run(self) -> None:
        failing = iter([True, False])

        async def work() -> str:
            await asyncio.sleep(0)
            if next(failing):
                raise ValueError("no")
            return "yes"

        async def story() -> list[str | BaseException]:
            shared = NextRun(work)
            first = asyncio.create_task(shared.join())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return list(await asyncio.gather(first, shared.join(), return_exceptions=True))

        error, answer = await story()
        assert isinstance(error, ValueError)
        assert answer == "yes"

    async def test_one_who_stops_waiting_does_not_stop_the_others(self) -> None:
        async def work() -> str:
            await asyncio.sleep(0.01)
            return "done"

        async def story() -> str:
            shared = NextRun(work)
            impatient = asyncio.create_task(shared.join())
            patient = asyncio.create_task(shared.join())
            await asyncio.sleep(0)
            impatient.cancel()
            return await patient

        assert await story() == "done"
