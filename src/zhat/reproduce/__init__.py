"""The paper, reproduced: experiments as data, a runner that knows no figure, and the drawing."""
