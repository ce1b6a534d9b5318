"""The pages."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def show_home(request: HttpRequest) -> HttpResponse:
    """Show the page with the button; `next` is the page to open after sign-in."""
    return render(request, "home.html", {"next": request.GET.get("next", "/members")})


@login_required
def show_members(request: HttpRequest) -> HttpResponse:
    """Show the page for members."""
    return render(request, "members.html")
