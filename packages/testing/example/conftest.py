"""A petstore for the tests in this directory, by the npm package @petstore/testing."""
import subprocess
import urllib.request

import pytest


@pytest.fixture(scope="session")
def petstore_addresses():
    with subprocess.Popen(["npx", "petstore-test"], stdout=subprocess.PIPE, text=True) as process:
        yield dict(process.stdout.readline().strip().split("=", 1) for _ in range(2))
        process.terminate()


@pytest.fixture
def petstore(petstore_addresses):
    """The address of a petstore that is empty."""
    reset = urllib.request.Request(petstore_addresses["PETSTORE_ADMIN_URL"] + "/reset", method="POST")
    urllib.request.urlopen(reset).close()
    return petstore_addresses["PETSTORE_URL"]
