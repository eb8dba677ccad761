"""
The losses, and where they stop
===============================

Every loss is a function of the margin u, which is positive where a sample is on the right side. The hinge grows without
end on the wrong side, so one wrong label can pull the boundary as far as it likes. Truncated losses stop at a cap.
"""

import psilearn
from psilearn.estimators.plots import LossDisplay

losses = [psilearn.Hinge(), psilearn.Psi(1.0), psilearn.TruncatedHinge(-1.0), psilearn.RejectHinge(0.2)]
display = LossDisplay.from_losses(losses)
display.ax_.set_title("Losses by margin")
