"""Takes signed messages and submits a job for each; answers only once the job is stored.

Start it with `python -m examples.recipes.webhook.receiver`. The secret is in WEBHOOK_SECRET.
"""

import argparse
import hashlib
import hmac
import json
import os
from collections.abc import AsyncIterator

from aiohttp import web

from asyncjob import AsyncJobs, AsyncKubernetesJobsClient
from asyncjob.client.errors import InvalidSubmissionError, KeyReusedError
from asyncjob.errors import AsyncJobError

JOBS = web.AppKey("jobs", AsyncJobs)
SECRET = web.AppKey("secret", bytes)


async def receive(request: web.Request) -> web.Response:
    """Submit the message under the id that its sender gave it, so that a repeat finds its job."""
    body = await request.read()
    if not _is_signed(request.app[SECRET], body, request.headers.get("X-Signature", "")):
        return web.Response(status=401, text="the signature is wrong")
    key = f"push/{request.headers['X-Delivery']}"
    try:
        message = json.loads(body)
        job = await request.app[JOBS].submit("push.build", message, idempotency_key=key)
    except (ValueError, InvalidSubmissionError) as error:
        return web.Response(status=400, text=str(error))  # another try changes nothing
    except KeyReusedError as error:
        return web.Response(status=409, text=str(error))
    except AsyncJobError as error:
        return web.Response(status=503, text=str(error))  # have the sender try again
    return web.json_response({"job": job.id, "created": job.created}, status=202)


def _is_signed(secret: bytes, body: bytes, signature: str) -> bool:
    wanted = hmac.new(secret, body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(wanted.encode(), signature.encode())


async def _jobs(receiver: web.Application) -> AsyncIterator[None]:
    async with await AsyncKubernetesJobsClient.connect() as jobs:
        receiver[JOBS] = jobs
        yield


def main() -> None:
    """Serve on this machine."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--port", type=int, default=8090)
    receiver = web.Application(client_max_size=2**20)
    receiver[SECRET] = os.environ["WEBHOOK_SECRET"].encode()
    receiver.cleanup_ctx.append(_jobs)
    receiver.add_routes([web.post("/push", receive)])
    web.run_app(receiver, host="127.0.0.1", port=options.parse_args().port)


if __name__ == "__main__":
    main()
