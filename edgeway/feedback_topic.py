"""The shell of feedback: writes it to its topic, and reads it back beside the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from edgeway import kafka
from edgeway.client_records import Ready, Sender
from edgeway.feedback import Answerer, Joined
from edgeway.tail import Tail
from schemas import codec, headers, ids
from schemas.messages import Feedback
from schemas.topics import FEEDBACK, RESULTS
from streams.settings import Settings

SOURCE = "edgeway/feedback"
SEND_S = 15.0


async def publish(
    settings: Settings, heard: Sequence[Feedback], tell: Callable[[int], None] = lambda count: None
) -> list[str]:
    """Write all of `heard`; the ids that no broker acknowledged.

    Raises:
        KafkaUnreachable: no broker answers.
        TopicsWrong: the topic is missing.
    """
    counts = await kafka.partition_counts(settings, FEEDBACK)
    async with kafka.producer(settings) as producer:
        sender = Sender(producer, counts[FEEDBACK], FEEDBACK)
        for one in heard:
            await sender.send(_record(one))
            tell(1)
        await sender.finish(SEND_S)
    return sender.unacknowledged


async def gather(
    settings: Settings, answerer: Answerer, begin: int, since: int, progress: Callable[[int], None]
) -> Joined:
    """Read all feedback and then all results that were written at or after `begin` (ms); `since` as in
    `Joined`.

    Raises:
        KafkaUnreachable, TopicsWrong: as `publish`.
    """
    joined = Joined(answerer, since)
    for topic, take in ((FEEDBACK, joined.feedback), (RESULTS, joined.result)):
        async with Tail(settings, topic, begin) as tail:
            async for records in tail.to_end():
                progress(len(records))
                for record in records:
                    take(record)
    return joined


def _record(heard: Feedback) -> Ready:
    # Keyed as the answer is, so that what is said of one answer keeps its order.
    scoped = ids.scoped(heard.tenant, heard.id)
    made = headers.build("feedback", heard.id, SOURCE)
    return Ready(scoped, heard.id, scoped.encode(), codec.encode(heard), made)
