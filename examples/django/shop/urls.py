"""The URLs of the pages, and Taproof's two URLs: POST /auth/taproof and POST /auth/taproof/sign-out."""

from django.urls import include, path

from shop.views import show_home, show_members

urlpatterns = [
    path("", show_home),
    path("members", show_members),
    path("auth/", include("taproof.integrations.django")),
]
