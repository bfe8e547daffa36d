import os
import signal
import threading

import pytest

from linearcore.runtime import Interrupt


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_noted_and_interrupts_nothing(number):
    with Interrupt() as interrupt:
        assert not interrupt
        os.kill(os.getpid(), number)
        assert interrupt


def test_the_second_interrupt_is_pythons_own():
    with Interrupt() as interrupt:
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupt
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with Interrupt():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_in_a_thread_it_does_nothing():
    found = []

    def work():
        with Interrupt() as interrupt:
            found.append(bool(interrupt))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]
